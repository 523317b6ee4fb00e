set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
# Where programs find the modules that they load; what was installed does not need the build tree.
set(CMAKE_BUILD_RPATH ${CMAKE_BINARY_DIR})
set(CMAKE_INSTALL_RPATH $ORIGIN/../lib/megalith)

find_program(CCACHE ccache)
if(CCACHE)
  # Every checkout of the repository shares one cache: paths are hashed relative to its root.
  set(CCACHE ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(megalith_flags INTERFACE)
target_compile_options(megalith_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Werror -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers>)
target_include_directories(megalith_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
if(MEGALITH_SANITIZE)
  target_compile_options(megalith_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${MEGALITH_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all>)
  # Instrumentation hides from GCC that the standard library's own moves initialise what they read (std::regex, std::optional).
  target_compile_options(megalith_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
  target_link_options(megalith_flags INTERFACE -fsanitize=${MEGALITH_SANITIZE})
endif()
if(MEGALITH_FUZZ)
  target_compile_options(megalith_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
