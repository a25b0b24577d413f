# Models: the engine once more, with atomics that ask an explorer (tests/engine/model/explore.hpp); one program per
# protocol, tests/engine/model/NAME_test.cpp. What shares no words comes from the library. Nothing of it is built unless
# it is asked for: scripts/proofs.py knows which proofs have to be run again. Sanitizers do not know fibers. What is
# explored is the language, the same on all processors.
if(CMAKE_CXX_FLAGS MATCHES "sanitize" OR CMAKE_CROSSCOMPILING)
  return()
endif()
set(MODEL_SOURCES ${ENGINE_SOURCES})
list(FILTER MODEL_SOURCES EXCLUDE REGEX "engine/(reducing|copying|layout)/")
file(GLOB MODEL_SHARED CONFIGURE_DEPENDS tests/engine/model/*.cpp)
list(FILTER MODEL_SHARED EXCLUDE REGEX "_test\\.cpp$")
# Objects, not an archive: of two definitions of one name the linker would take some from the library.
add_library(nearfield_engine_model OBJECT EXCLUDE_FROM_ALL ${MODEL_SOURCES} ${MODEL_SHARED})
target_compile_options(nearfield_engine_model PUBLIC -O1 -include ${CMAKE_SOURCE_DIR}/tests/engine/model/atomic_ref.hpp)
set_source_files_properties(tests/engine/model/explore.cpp PROPERTIES COMPILE_OPTIONS -O2)
target_link_libraries(nearfield_engine_model PUBLIC nearfield_engine GTest::gtest_main)
target_link_options(nearfield_engine_model PUBLIC -Wl,--wrap=fallocate,--wrap=madvise,--wrap=mmap,--wrap=munmap) # tests/engine/model/members.cpp

file(GLOB MODELS CONFIGURE_DEPENDS tests/engine/model/*_test.cpp)
foreach(source ${MODELS})
  get_filename_component(protocol ${source} NAME_WE)
  string(REGEX REPLACE "_test$" "" protocol ${protocol})
  add_executable(model_${protocol} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(model_${protocol} PRIVATE nearfield_engine_model)
  # Builds it, and compares what it explores with the record.
  add_test(NAME engine.model.${protocol}
           COMMAND python3 ${CMAKE_SOURCE_DIR}/scripts/proofs.py --rerun --build ${CMAKE_BINARY_DIR} ${protocol})
  set_tests_properties(engine.model.${protocol} PROPERTIES LABELS full TIMEOUT 7200)
endforeach()
