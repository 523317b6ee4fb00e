# Kernels compile as C++17 without the standard library (nvcc 13.0 over g++ 12 fails on more); everything else stays C++20.
if(NOT CMAKE_CUDA_COMPILER)
  find_program(CMAKE_CUDA_COMPILER nvcc HINTS /usr/local/cuda/bin)
endif()
set(CMAKE_CUDA_ARCHITECTURES ${MEGALITH_CUDA_ARCHITECTURES})
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
find_package(CUDAToolkit REQUIRED)
target_compile_options(megalith_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Werror --use_fast_math --expt-relaxed-constexpr -Xcudafe=--diag_suppress=186>)

# cuDNN and the header-only frontend to it (the pinned wheel ships the headers).
set(CUDNN_FRONTEND_VERSION 1.18.0)
find_path(CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS} REQUIRED)
find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib REQUIRED)
set(wheel_dir ${CMAKE_BINARY_DIR}/cudnn-frontend-${CUDNN_FRONTEND_VERSION})
find_path(CUDNN_FRONTEND_INCLUDE cudnn_frontend.h HINTS ${wheel_dir}/include)
if(NOT CUDNN_FRONTEND_INCLUDE)
  execute_process(
    COMMAND python3 -m pip download --quiet --no-deps --disable-pip-version-check --only-binary :all:
            --dest ${wheel_dir} nvidia-cudnn-frontend==${CUDNN_FRONTEND_VERSION}
    RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "the headers of nvidia-cudnn-frontend ${CUDNN_FRONTEND_VERSION} could not be fetched with pip; "
                        "name a folder that has them with -DCUDNN_FRONTEND_INCLUDE=...")
  endif()
  file(GLOB wheel ${wheel_dir}/*.whl)
  file(ARCHIVE_EXTRACT INPUT ${wheel} DESTINATION ${wheel_dir} PATTERNS "include/*")
  find_path(CUDNN_FRONTEND_INCLUDE cudnn_frontend.h HINTS ${wheel_dir}/include REQUIRED)
endif()
add_library(megalith_cudnn INTERFACE)
target_include_directories(megalith_cudnn SYSTEM INTERFACE ${CUDNN_INCLUDE} ${CUDNN_FRONTEND_INCLUDE})
target_compile_definitions(megalith_cudnn INTERFACE CUDNN_FRONTEND_SKIP_JSON_LIB)
target_link_libraries(megalith_cudnn INTERFACE ${CUDNN_LIBRARY})
