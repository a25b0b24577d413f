# libnearfield-engine.so: the engine behind a C API (include/nearfield.h), for programs without MPI.
file(GLOB API_SOURCES CONFIGURE_DEPENDS engine/api/*.cpp)
nearfield_unity(API_UNITS ${API_SOURCES} APART exports)
set_source_files_properties(${CMAKE_SOURCE_DIR}/engine/api/exports.cpp PROPERTIES COMPILE_DEFINITIONS NEARFIELD_VERSION="${PROJECT_VERSION}")
if(CMAKE_CXX_FLAGS MATCHES "sanitize") # a library of its own would lack the sanitizer's functions
  return()
endif()
add_library(nearfield-engine SHARED ${API_UNITS})
target_include_directories(nearfield-engine PUBLIC include)
target_precompile_headers(nearfield-engine PRIVATE ${COMMON_HEADERS})
target_link_libraries(nearfield-engine PRIVATE nearfield_engine gcc)
target_link_options(nearfield-engine PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -static-libstdc++ -static-libgcc
                    -Wl,--version-script=${CMAKE_SOURCE_DIR}/engine/api/exports.map)
set_target_properties(nearfield-engine PROPERTIES LINK_DEPENDS ${CMAKE_SOURCE_DIR}/engine/api/exports.map)
nearfield_old_glibc(nearfield-engine libm.so.6 libdl.so.2 libpthread.so.0)
