# Included, not added as a subdirectory: protobuf_generate names its output after the folder it is called from, and
# generated headers are included by rooted paths ("proto/fusiond/v1/graph.pb.h").

# fusiond::proto: messages only. Service stubs, which need gRPC, are fusiond::services.
add_library(fusiond_proto STATIC
  proto/fusiond/v1/executable.proto
  proto/fusiond/v1/graph.proto)
add_library(fusiond::proto ALIAS fusiond_proto)
target_link_libraries(fusiond_proto PUBLIC protobuf::libprotobuf)
target_include_directories(fusiond_proto SYSTEM PUBLIC ${PROJECT_BINARY_DIR})
protobuf_generate(TARGET fusiond_proto IMPORT_DIRS ${PROJECT_SOURCE_DIR})
