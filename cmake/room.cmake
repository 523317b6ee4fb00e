# megalith_room(NAME SOURCES a.cpp ... LINKS room-or-library ...): one folder under src/ is one library.
function(megalith_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;LINKS" ${ARGN})
  add_library(megalith_${name} STATIC ${ROOM_SOURCES})
  target_link_libraries(megalith_${name} PUBLIC megalith_flags ${ROOM_LINKS})
endfunction()

# megalith_embed(ROOM folder/page.css kPageCss): sources of the room can include "page_css.h", which has the text as kPageCss.
function(megalith_embed room file name)
  get_filename_component(header ${file} NAME)
  string(REPLACE "." "_" header ${header})
  set(header ${CMAKE_CURRENT_BINARY_DIR}/embedded/${header}.h)
  add_custom_command(OUTPUT ${header}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/${file} -DOUTPUT=${header} -DNAME=${name}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${file} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  target_sources(megalith_${room} PRIVATE ${header})
  target_include_directories(megalith_${room} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/embedded)
endfunction()

# megalith_room_test(NAME SOURCES a_test.cpp ... [LINKS ...]): tests/NAME mirrors src/NAME as one test program.
function(megalith_room_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(test_${name} ${TEST_SOURCES})
  target_link_libraries(test_${name} PRIVATE megalith_${name} ${TEST_LINKS} megalith_test_support GTest::gtest_main)
  add_test(NAME ${name} COMMAND test_${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 900)
  # A sanitizer calls dlopen() in the program's place, and the loader then does not look where the program says.
  if(MEGALITH_SANITIZE)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT LD_LIBRARY_PATH=${CMAKE_BINARY_DIR})
  endif()
endfunction()

if(MEGALITH_FUZZ)
  add_custom_target(fuzzers)
endif()
# megalith_fuzz_target(NAME source.cpp room): a libFuzzer program fuzz_NAME, built by the fuzz preset only.
function(megalith_fuzz_target name source room)
  if(NOT MEGALITH_FUZZ)
    return()
  endif()
  add_executable(fuzz_${name} ${source})
  target_link_libraries(fuzz_${name} PRIVATE megalith_${room})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  target_include_directories(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  add_dependencies(fuzzers fuzz_${name})
endfunction()
