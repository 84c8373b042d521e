#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "muster/v1/job.pb.h"

// How a host of the inventory is reached. Pure.

namespace muster::nodes {

inline constexpr uint32_t kDefaultWorkerPort = 7465;

struct Endpoint {
  enum class Kind { kLocal, kDirect };
  Kind kind = Kind::kLocal;
  std::string host;     // as in the inventory
  std::string address;  // kDirect: a numeric loopback address
  uint32_t port = 0;    // kDirect

  // "local", "direct 127.0.0.2:7465", "direct [::1]:7465".
  std::string Describe() const;
  // "127.0.0.2:7465", "[::1]:7465".
  std::string HostPort() const;
};

// True for 127.0.0.0/8, ::1 and "localhost".
bool IsLoopback(const std::string& host);

// The host's own transport, else `default_transport`, else by its address: loopback hosts are
// local. InvalidArgument for what this version can't reach, with host, line, reason and fix.
absl::StatusOr<Endpoint> ResolveEndpoint(const v1::Host& host,
                                         const std::string& default_transport);

}  // namespace muster::nodes
