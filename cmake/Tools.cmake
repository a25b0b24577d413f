# Programs that the command starts. As the libraries they run from glibc 2.28 on, and need no other library.
function(nearfield_tool name)
  add_executable(${name} ${ARGN})
  target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc)
  target_compile_options(${name} PRIVATE -O1) # what takes time in them is the engine's
  if(NEARFIELD_TESTS_ALONE)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

if(TARGET nearfield_topology)
  nearfield_tool(nearfield-probe tools/probe.cpp)
  target_link_libraries(nearfield-probe PRIVATE nearfield_topology)
  nearfield_old_glibc(nearfield-probe libm.so.6 libdl.so.2 libpthread.so.0)
endif()

add_library(nearfield_simulation STATIC tools/simulation/caches.cpp)
target_link_libraries(nearfield_simulation PUBLIC nearfield_engine)
nearfield_tool(nearfield-simulate tools/simulate.cpp)
target_link_libraries(nearfield-simulate PRIVATE nearfield_simulation)

nearfield_tool(nearfield-model tools/model.cpp tools/calibrate.cpp tools/plan.cpp)
foreach(name nearfield-simulate nearfield-model)
  target_link_libraries(${name} PRIVATE nearfield_engine)
  nearfield_old_glibc(${name} libm.so.6 libdl.so.2 libpthread.so.0)
endforeach()

nearfield_tool(nearfield-wire tools/wire.cpp)

# In front of every job: what it does not load takes no time.
nearfield_tool(nearfield-command tools/nearfield.cpp tools/afterwards.cpp tools/run.cpp tools/installation.cpp)
set_target_properties(nearfield-command PROPERTIES OUTPUT_NAME nearfield)
nearfield_old_glibc(nearfield-command)
