#pragma once

#include <map>
#include <string>

#include "common/unique_fd.h"
#include "muster/v1/worker.pb.h"
#include "worker/daemon/reactor.h"
#include "worker/facts/proc_reader.h"

namespace muster::worker {

// Answers questions about an attempt that is about to start, and holds the port that was chosen for
// it. Reactor thread only; every answer is quick (local files, one bind).
class Prober {
 public:
  Prober(Reactor& reactor, const facts::ProcReader& proc, std::string state_dir);
  ~Prober();

  // `attempt` names the owner of a held port; asking again for the same attempt gives the same
  // port.
  v1::ProbeResult Probe(const v1::Probe& probe, const std::string& attempt);
  // When the ranks are about to start, or will not any more.
  void ReleasePort(const std::string& attempt);

 private:
  struct Held {
    UniqueFd socket;
    uint32_t port;
    Reactor::TimerId expiry;
  };
  void HoldPort(const v1::Probe& probe, const std::string& attempt, v1::ProbeResult& result);

  Reactor& reactor_;
  const facts::ProcReader& proc_;
  const std::string state_dir_;
  std::map<std::string, Held> held_;
};

}  // namespace muster::worker
