#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/v1/job.pb.h"

// How a host of the inventory is reached (docs/transports.md). Pure.

namespace muster::nodes {

inline constexpr uint32_t kDefaultWorkerPort = 7465;

// The names that a hostfile and --transport know, the usual ones first.
const std::vector<std::string>& TransportNames();

// A transport as `--transport` writes it: NAME, or NAME:WORDS for ssh and openssh (options of ssh)
// and command (the template of the program).
struct Transport {
  std::string name;
  std::vector<std::string> words;
};
// Several, one a line: the first is for hosts whose line names none, the others bring the words for
// hosts that name them. InvalidArgument names what is wrong and the fix.
absl::StatusOr<std::vector<Transport>> ParseTransports(std::string_view text);

struct Endpoint {
  enum class Kind { kLocal, kDirect, kSsh, kOpenssh, kCommand };
  Kind kind = Kind::kLocal;
  std::string host;                // as in the inventory
  std::string address;             // kDirect: numeric, or a name
  uint32_t port = 0;               // kDirect
  bool tls = false;                // kDirect: needed everywhere but on loopback addresses
  std::vector<std::string> words;  // kSsh, kOpenssh, kCommand: of the transport

  // "local", "direct 127.0.0.2:7465", "direct [::1]:7465", "ssh node1", "openssh node1",
  // "command node1".
  std::string Describe() const;
  // "127.0.0.2:7465", "[::1]:7465".
  std::string HostPort() const;
};

// The host's own transport, else the first of `transports` (as for ParseTransports), else by its
// address: loopback hosts (hostfile/host_word.h) are local, others are reached by ssh. Its
// words are those that `transports` has for it. InvalidArgument for what this version can't reach,
// with host, line, reason and fix.
absl::StatusOr<Endpoint> ResolveEndpoint(const v1::Host& host, const std::string& transports);

}  // namespace muster::nodes
