#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <string>
#include <vector>

#include "controller/certs/authority.h"
#include "muster/v1/job.pb.h"

namespace muster::cli {

struct CertHosts {
  std::vector<v1::Host> hosts;
  std::string transports;     // as JobSpec.default_transport
  std::string remote_folder;  // on the hosts; empty: the one of the daemon that answers
  std::string folder;         // the authority's, with this controller's certificate
};

// What became of one host.
struct CertResult {
  std::string host;
  absl::StatusOr<std::string> folder;  // on the host, or why not
};

// Gives each host a new key, certificate and list of authorities, many at a time; `report` is told
// of each in the order of their ends, on the calling thread's behalf, one at a time. The results
// are in the order of the hosts. Returns at the latest when every host's own time limits are over.
std::vector<CertResult> RenewHosts(const CertHosts& what, certs::Authority& authority,
                                   const std::function<void(const CertResult&)>& report);

}  // namespace muster::cli
