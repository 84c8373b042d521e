#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <memory>
#include <string>

#include "common/tls/credentials.h"
#include "common/tls/pump.h"
#include "controller/nodes/connection.h"
#include "controller/nodes/stop_signal.h"

namespace muster::nodes {

struct TlsDial {
  std::string host;     // as in the hostfile: whom the certificate must name
  std::string address;  // numeric, or a name
  uint32_t port = 0;
  std::chrono::milliseconds timeout{10'000};  // for all of it
};

// A connection to a musterd that has been accepted on both sides by mutual TLS. The pump outlives
// the connection. FailedPrecondition: another try will not help (certificates, names);
// DeadlineExceeded, Unavailable, Cancelled otherwise. Any thread.
absl::StatusOr<Connection> DialTls(const TlsDial& dial, tls::Pump& pump,
                                   const std::shared_ptr<tls::Credentials>& credentials,
                                   const StopSignal& stop);

}  // namespace muster::nodes
