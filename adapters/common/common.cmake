# What every adapter is made of: the seam (cosim_seam, free of gRPC) and its wire (cosim_wire, which has Serve).

set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
add_compile_options(-Wall -Wextra)

# The protocol: the only thing of cosim that an adapter depends on.
set(COSIM_PROTO_DIR "${CMAKE_CURRENT_LIST_DIR}/../../proto" CACHE PATH "folder that holds cosim/protocol/v1")
# google/rpc/status.proto and error_details.proto: no Debian package has them, googleapis-common-protos on PyPI does.
set(GOOGLE_PROTO_DIR "" CACHE PATH "folder that holds google/rpc, as site-packages does with googleapis-common-protos")
if(NOT EXISTS "${GOOGLE_PROTO_DIR}/google/rpc/status.proto")
  message(FATAL_ERROR "GOOGLE_PROTO_DIR must hold google/rpc/status.proto: pip install googleapis-common-protos, "
                      "then name its site-packages folder")
endif()

find_package(PkgConfig REQUIRED)
pkg_check_modules(GRPC REQUIRED IMPORTED_TARGET grpc++ protobuf)
find_program(PROTOC protoc REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
find_package(Threads REQUIRED)

add_library(cosim_seam STATIC
  ${CMAKE_CURRENT_LIST_DIR}/busy.cc ${CMAKE_CURRENT_LIST_DIR}/flows.cc ${CMAKE_CURRENT_LIST_DIR}/paths.cc
  ${CMAKE_CURRENT_LIST_DIR}/seam.cc ${CMAKE_CURRENT_LIST_DIR}/world.cc)
target_include_directories(cosim_seam PUBLIC "${CMAKE_CURRENT_LIST_DIR}")

set(GENERATED "${CMAKE_CURRENT_BINARY_DIR}/generated")
file(MAKE_DIRECTORY "${GENERATED}")
set(PROTO_SOURCES "")
function(generate folder proto)
  string(REGEX REPLACE "\\.proto$" "" stem "${proto}")
  set(made "${GENERATED}/${stem}.pb.cc" "${GENERATED}/${stem}.pb.h" "${GENERATED}/${stem}.grpc.pb.cc" "${GENERATED}/${stem}.grpc.pb.h")
  add_custom_command(
    OUTPUT ${made}
    COMMAND ${PROTOC} -I "${folder}" "--cpp_out=${GENERATED}" "--grpc_out=${GENERATED}"
            "--plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN}" "${folder}/${proto}"
    DEPENDS "${folder}/${proto}")
  set(PROTO_SOURCES ${PROTO_SOURCES} "${GENERATED}/${stem}.pb.cc" "${GENERATED}/${stem}.grpc.pb.cc" PARENT_SCOPE)
endfunction()
generate("${COSIM_PROTO_DIR}" cosim/protocol/v1/network_simulator.proto)
generate("${GOOGLE_PROTO_DIR}" google/rpc/status.proto)
generate("${GOOGLE_PROTO_DIR}" google/rpc/error_details.proto)

add_library(cosim_wire STATIC
  ${CMAKE_CURRENT_LIST_DIR}/answer.cc ${CMAKE_CURRENT_LIST_DIR}/frames.cc ${CMAKE_CURRENT_LIST_DIR}/server.cc
  ${CMAKE_CURRENT_LIST_DIR}/session.cc ${CMAKE_CURRENT_LIST_DIR}/take.cc ${PROTO_SOURCES})
target_include_directories(cosim_wire SYSTEM PUBLIC "${GENERATED}")
target_link_libraries(cosim_wire PUBLIC cosim_seam PkgConfig::GRPC Threads::Threads)
