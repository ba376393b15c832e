# Included, not added as a subdirectory: protobuf_generate names its output after the folder it is called from, and
# generated headers are included by rooted paths ("proto/fusiond/v1/graph.pb.h").

# fusiond::proto: messages only. Service stubs, which need gRPC, are fusiond::services.
add_library(fusiond_proto STATIC
  proto/fusiond/v1/executable.proto
  proto/fusiond/v1/explanation.proto
  proto/fusiond/v1/graph.proto
  proto/fusiond/v1/internal.proto)
add_library(fusiond::proto ALIAS fusiond_proto)
target_link_libraries(fusiond_proto PUBLIC protobuf::libprotobuf)
target_include_directories(fusiond_proto SYSTEM PUBLIC ${PROJECT_BINARY_DIR})
protobuf_generate(TARGET fusiond_proto IMPORT_DIRS ${PROJECT_SOURCE_DIR})

# fusiond::services: the control plane's messages and gRPC stubs.
add_library(fusiond_services STATIC
  proto/fusiond/v1/service.proto)
add_library(fusiond::services ALIAS fusiond_services)
target_link_libraries(fusiond_services PUBLIC fusiond::proto gRPC::grpc++)
target_include_directories(fusiond_services SYSTEM PUBLIC ${PROJECT_BINARY_DIR})
protobuf_generate(TARGET fusiond_services IMPORT_DIRS ${PROJECT_SOURCE_DIR})
protobuf_generate(TARGET fusiond_services LANGUAGE grpc
  PLUGIN "protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>"
  GENERATE_EXTENSIONS .grpc.pb.h .grpc.pb.cc
  IMPORT_DIRS ${PROJECT_SOURCE_DIR})
