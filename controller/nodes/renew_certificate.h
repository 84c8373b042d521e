#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <functional>
#include <string>

#include "controller/nodes/connection.h"

namespace muster::nodes {

struct NodeCertificate {
  std::string ca;
  std::string host;    // as in the hostfile
  std::string folder;  // on the node; empty: the one of the daemon that answers
  std::chrono::milliseconds timeout{20'000};
};

struct SignedCertificate {
  std::string certificate_pem;
  std::string trust_pem;
};

// Lets the node make a key pair, has its request signed by `sign`, and gives it the certificate.
// The folder on the node where all lies now. Blocking; any thread.
absl::StatusOr<std::string> RenewCertificate(
    Connection connection, const NodeCertificate& node,
    const std::function<absl::StatusOr<SignedCertificate>(const std::string& request_pem)>& sign);

}  // namespace muster::nodes
