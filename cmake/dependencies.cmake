find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(GTest REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
find_package(ZLIB REQUIRED)
find_package(CURL REQUIRED)
find_package(simdjson QUIET)
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

# The threaded OpenBLAS, always called with one thread per call: unlike the serial build it may be called from several
# threads at once.
find_library(OPENBLAS_LIBRARY NAMES openblas PATH_SUFFIXES openblas-pthread REQUIRED)
find_path(OPENBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas-pthread x86_64-linux-gnu/openblas-pthread
  aarch64-linux-gnu/openblas-pthread REQUIRED)
add_library(megalith_openblas INTERFACE)
target_include_directories(megalith_openblas SYSTEM INTERFACE ${OPENBLAS_INCLUDE})
target_link_libraries(megalith_openblas INTERFACE ${OPENBLAS_LIBRARY})

