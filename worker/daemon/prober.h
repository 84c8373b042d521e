#pragma once

#include <functional>
#include <map>
#include <string>

#include "common/reactor.h"
#include "common/unique_fd.h"
#include "muster/v1/worker.pb.h"
#include "worker/daemon/probe_helper.h"
#include "worker/facts/proc_reader.h"

namespace muster::worker {

// Answers questions about an attempt that is about to start, and holds the port that was chosen for
// it. Reactor thread only; what may take its time is the helper's.
class Prober {
 public:
  using Done = std::function<void(v1::ProbeResult)>;

  // The helper outlives the prober.
  Prober(Reactor& reactor, const facts::ProcReader& proc, ProbeHelper& helper);
  ~Prober();

  // `attempt` names the owner of a held port; asking again for the same attempt gives the same
  // port. Calls `done` once, later.
  void Probe(const v1::Probe& probe, const std::string& attempt, Done done);
  // When the ranks are about to start, or will not any more.
  void ReleasePort(const std::string& attempt);
  // The node's devices as the last answer for this attempt had them; empty: not known.
  google::protobuf::RepeatedPtrField<v1::Device> Devices(const std::string& attempt) const;

 private:
  struct Held {
    UniqueFd socket;
    uint32_t port;
    Reactor::TimerId expiry;
  };
  struct Seen {
    google::protobuf::RepeatedPtrField<v1::Device> devices;
    Reactor::TimerId expiry;
  };
  using Time = Reactor::TimePoint;
  void Finish(const v1::Probe& probe, const std::string& attempt, Time give_up,
              v1::ProbeResult result, const Done& done);
  void HoldPort(const v1::Probe& probe, const std::string& attempt, v1::ProbeResult& result);
  void Remember(const std::string& attempt, const v1::ProbeResult& result);

  Reactor& reactor_;
  const facts::ProcReader& proc_;
  ProbeHelper& helper_;
  std::map<std::string, Held> held_;
  std::map<std::string, Seen> seen_;
};

}  // namespace muster::worker
