# Optional: without gRPC and protobuf there is no supervisor and no monitor; training is whole.
set(MEGALITH_GRPC AUTO CACHE STRING "Build the control plane with gRPC: ON, OFF, or AUTO where gRPC is found")

set(MEGALITH_HAS_GRPC OFF)
if(MEGALITH_GRPC)
  pkg_check_modules(grpc QUIET IMPORTED_TARGET grpc++ protobuf)
  find_program(PROTOC protoc)
  find_program(PROTOC_GRPC grpc_cpp_plugin)
  if(grpc_FOUND AND PROTOC AND PROTOC_GRPC)
    set(MEGALITH_HAS_GRPC ON)
  elseif(NOT MEGALITH_GRPC STREQUAL AUTO)
    message(FATAL_ERROR "the control plane is asked for and gRPC is not found: run scripts/install-deps")
  endif()
endif()
message(STATUS "gRPC: ${MEGALITH_HAS_GRPC}")

# megalith_protocol(NAME file.proto): a library with what protoc makes of the file; sources that link it include "file.grpc.pb.h".
function(megalith_protocol name file)
  get_filename_component(stem ${file} NAME_WE)
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR}/${file} DIRECTORY)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/protocol)
  file(MAKE_DIRECTORY ${made})
  add_custom_command(
    OUTPUT ${made}/${stem}.pb.cc ${made}/${stem}.pb.h ${made}/${stem}.grpc.pb.cc ${made}/${stem}.grpc.pb.h
    COMMAND ${PROTOC} --proto_path=${folder} --cpp_out=${made} --grpc_out=${made} --plugin=protoc-gen-grpc=${PROTOC_GRPC} ${stem}.proto
    DEPENDS ${file})
  add_library(${name} STATIC ${made}/${stem}.pb.cc ${made}/${stem}.grpc.pb.cc)
  target_include_directories(${name} SYSTEM PUBLIC ${made})
  target_link_libraries(${name} PUBLIC PkgConfig::grpc)
endfunction()
