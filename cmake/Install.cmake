# What users get, twice: below any prefix (`cmake --install`, and CPack's packages), and as the content of the wheel (component
# `wheel`, pyproject.toml). Both can be moved: everything is found relative to where it is.
#
#   LIBDIR/libnearfield*.so, LIBDIR/nearfield/bin (programs), LIBDIR/nearfield/python (the command), bin/nearfield, share
#   INCLUDEDIR/nearfield.h
#   nearfield/lib, nearfield/bin, nearfield/include, nearfield: in a wheel
include(GNUInstallDirs)
set(libraries nearfield nearfield-heap nearfield-engine)
foreach(abi mpich ompi abi)
  if(TARGET nearfield-${abi})
    list(APPEND libraries nearfield-${abi})
  endif()
endforeach()
set(programs nearfield-model)
if(TARGET nearfield-probe)
  list(APPEND programs nearfield-probe)
endif()
# Below prefixes alone: a wheel does not know which MPI there will be, and is to be small.
set(more nearfield-simulate)
foreach(program nearfield-bench-mpich nearfield-bench-ompi)
  if(TARGET ${program})
    list(APPEND more ${program})
  endif()
endforeach()
list(LENGTH libraries count)
if(count EQUAL 3)
  message(FATAL_ERROR "Nearfield: there is no mpi.h to build for; install an MPI (Debian's libmpich-dev, libopenmpi-dev), or say where one is: -DNEARFIELD_MPICH_INCLUDE=, -DNEARFIELD_OMPI_INCLUDE=")
endif()
add_custom_target(nearfield-installed DEPENDS ${libraries} ${programs} nearfield-command)

set(package ${CMAKE_INSTALL_LIBDIR}/nearfield/python/nearfield)
install(TARGETS ${libraries} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT nearfield)
install(FILES include/nearfield.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT nearfield)
install(TARGETS ${programs} ${more} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/nearfield/bin COMPONENT nearfield OPTIONAL)
install(DIRECTORY nearfield/ DESTINATION ${package} COMPONENT nearfield
        PATTERN __pycache__ EXCLUDE PATTERN lib EXCLUDE PATTERN bin EXCLUDE)
install(FILES engine/collectives/operations.def DESTINATION ${package} COMPONENT nearfield)
install(TARGETS nearfield-command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT nearfield)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT nearfield)
install(DIRECTORY licenses DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT nearfield)
install(FILES packaging/shell/nearfield.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT nearfield)
install(FILES packaging/shell/nearfield.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME nearfield COMPONENT nearfield)
install(FILES packaging/shell/nearfield.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
        RENAME _nearfield COMPONENT nearfield)
install(FILES packaging/shell/nearfield.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
        COMPONENT nearfield)

install(TARGETS ${libraries} LIBRARY DESTINATION nearfield/lib COMPONENT wheel EXCLUDE_FROM_ALL)
install(FILES include/nearfield.h DESTINATION nearfield/include COMPONENT wheel EXCLUDE_FROM_ALL)
install(TARGETS ${programs} RUNTIME DESTINATION nearfield/bin COMPONENT wheel EXCLUDE_FROM_ALL)
install(FILES engine/collectives/operations.def DESTINATION nearfield COMPONENT wheel EXCLUDE_FROM_ALL)
install(TARGETS nearfield-command RUNTIME DESTINATION ../scripts COMPONENT wheel EXCLUDE_FROM_ALL)

# For builds of others: nearfieldConfig.cmake, pkg-config --variable=preload nearfield, and pkg-config nearfield-engine.
include(CMakePackageConfigHelpers)
set(config ${CMAKE_INSTALL_LIBDIR}/cmake/nearfield)
configure_package_config_file(cmake/nearfieldConfig.cmake.in ${CMAKE_BINARY_DIR}/nearfieldConfig.cmake
                              INSTALL_DESTINATION ${config} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_BINDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/nearfieldConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/nearfieldConfig.cmake ${CMAKE_BINARY_DIR}/nearfieldConfigVersion.cmake
        DESTINATION ${config} COMPONENT nearfield)
string(REGEX REPLACE "[^/]+" ".." up ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
configure_file(cmake/nearfield.pc.in ${CMAKE_BINARY_DIR}/nearfield.pc @ONLY)
configure_file(cmake/nearfield-engine.pc.in ${CMAKE_BINARY_DIR}/nearfield-engine.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/nearfield.pc ${CMAKE_BINARY_DIR}/nearfield-engine.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT nearfield)

set(CPACK_PACKAGE_NAME nearfield)
set(CPACK_PACKAGE_VENDOR "The Nearfield authors")
set(CPACK_PACKAGE_CONTACT "The Nearfield authors <nearfield@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Makes MPI faster inside a node, under unmodified programs and MPI libraries")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL nearfield)
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.28), libgcc-s1, python3 (>= 3.9)")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libhwloc15")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-jinja2, python3-matplotlib")
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE "BSD-3-Clause")
set(CPACK_RPM_PACKAGE_REQUIRES "python3 >= 3.9")
set(CPACK_RPM_PACKAGE_SUGGESTS "hwloc-libs")
set(CPACK_RPM_SPEC_MORE_DEFINE "%define _build_id_links none")
include(CPack)
