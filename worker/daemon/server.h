#pragma once

#include <absl/status/status.h>

#include <memory>
#include <string>
#include <vector>

#include "common/reactor.h"
#include "common/tls/credentials.h"
#include "worker/daemon/listener.h"
#include "worker/daemon/options.h"
#include "worker/daemon/state_dir.h"

namespace muster::worker {

// A whole musterd: node context, worker, gRPC server and listeners on one reactor. Used by main on
// its only thread.
class Server {
 public:
  // `shim_program` is the path of muster-shim.
  Server(const Options& options, StateDir state, std::string shim_program);
  ~Server();

  // Listens; the error says which address and why, or what is wrong with the certificates that an
  // address off the loopback needs. Before any thread is started.
  absl::Status Listen();
  // Takes up what an earlier daemon left and serves until SIGTERM, SIGINT or the idle limit. Ranks
  // live on.
  void Run();

 private:
  struct Parts;
  // OK if no address needs them.
  absl::Status CertificatesForTls() const;
  void WatchSignals();
  void CheckIdle();

  const Options options_;
  const StateDir state_;
  const std::string shim_program_;
  std::vector<TcpListener> sockets_;  // and the Unix socket
  std::shared_ptr<tls::Credentials> credentials_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace muster::worker
