#pragma once

#include <absl/status/status.h>
#include <grpcpp/support/status.h>

#include <string>

namespace muster::api {

// absl's codes are gRPC's, number for number.
inline grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

}  // namespace muster::api
