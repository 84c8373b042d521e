#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

// Who a certificate of ours stands for: a URI among its alternative names. Pure.

namespace muster::tls {

enum class Role {
  kController,  // "muster://<ca>/@controller": may steer nodes; a TLS client
  kNode,        // "muster://<ca>/<host>": may be steered as that host; a TLS server
};

struct Identity {
  std::string ca;  // name of the authority, the same over its rotations
  Role role = Role::kNode;
  std::string host;  // kNode: as the hostfile has it

  static Identity Controller(std::string ca) { return {std::move(ca), Role::kController, ""}; }
  static Identity Node(std::string ca, std::string host) {
    return {std::move(ca), Role::kNode, std::move(host)};
  }

  std::string Uri() const;
  // For people: "host node1", "the controller".
  std::string Describe() const;

  bool operator==(const Identity&) const = default;
};

// A name for an authority: 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with a dot. InvalidArgument
// names the reason.
absl::Status CheckCaName(std::string_view name);
// A host as hostfiles have them, an IPv6 address included: 1 to 253 of A-Z a-z 0-9 . _ : % -, not
// beginning with a dot.
absl::Status CheckHostName(std::string_view host);

// InvalidArgument if `uri` is no identity of ours.
absl::StatusOr<Identity> ParseIdentity(std::string_view uri);

}  // namespace muster::tls
