# gRPC, Protobuf and abseil, for the dynamic controller and for the fully static worker.
# Protobuf must be found before gRPC, or gRPC's config looks for a CMake package that Debian does not ship.
find_package(Protobuf REQUIRED)
find_package(PkgConfig REQUIRED)
find_program(MUSTER_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)
pkg_check_modules(GRPCXX REQUIRED grpc++ protobuf)
find_package(OpenSSL REQUIRED)

# muster_rpc: shared libraries, for the controller and for tests.
add_library(muster_rpc INTERFACE)
target_include_directories(muster_rpc SYSTEM INTERFACE ${GRPCXX_INCLUDE_DIRS})
target_link_libraries(muster_rpc INTERFACE ${GRPCXX_LIBRARIES} OpenSSL::SSL Threads::Threads)

# muster_static: what a program adds to become fully static (no dependence on the host's glibc).
add_library(muster_static INTERFACE)
target_link_options(muster_static INTERFACE -static)
target_link_libraries(muster_static INTERFACE ${GRPCXX_STATIC_LDFLAGS} Threads::Threads)

# The precompiled header that all RPC units share.
file(WRITE ${CMAKE_BINARY_DIR}/pch/muster_rpc_pch.cc "")
add_library(muster_rpc_pch STATIC ${CMAKE_BINARY_DIR}/pch/muster_rpc_pch.cc)
target_precompile_headers(muster_rpc_pch PRIVATE <grpcpp/grpcpp.h> <google/protobuf/message.h>
  <absl/status/statusor.h> <absl/synchronization/mutex.h> <chrono> <filesystem> <functional> <map> <memory>
  <optional> <string> <string_view> <vector>)
target_link_libraries(muster_rpc_pch PUBLIC Threads::Threads)
