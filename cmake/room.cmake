# megalith_room(NAME SOURCES a.cpp ... LINKS room-or-library ...): one folder under src/ is one library.
function(megalith_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;LINKS" ${ARGN})
  add_library(megalith_${name} STATIC ${ROOM_SOURCES})
  target_link_libraries(megalith_${name} PUBLIC megalith_flags ${ROOM_LINKS})
endfunction()

# megalith_room_test(NAME SOURCES a_test.cpp ... [LINKS ...]): tests/NAME mirrors src/NAME as one test program.
function(megalith_room_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(test_${name} ${TEST_SOURCES})
  target_link_libraries(test_${name} PRIVATE megalith_${name} ${TEST_LINKS} GTest::gtest_main)
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(test_${name} PRIVATE MEGALITH_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND test_${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 900)
endfunction()

# megalith_fuzz_target(NAME source.cpp room): a libFuzzer program fuzz_NAME, built by the fuzz preset only.
function(megalith_fuzz_target name source room)
  if(NOT MEGALITH_FUZZ)
    return()
  endif()
  add_executable(fuzz_${name} ${source})
  target_link_libraries(fuzz_${name} PRIVATE megalith_${room})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  add_test(NAME fuzz_${name} COMMAND fuzz_${name} -max_total_time=10 -rss_limit_mb=2048 -verbosity=0)
endfunction()
