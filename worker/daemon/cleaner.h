#pragma once

#include <functional>
#include <memory>

#include "common/reactor.h"
#include "muster/v1/worker.pb.h"
#include "worker/facts/proc_reader.h"
#include "worker/ranks/orphans.h"

namespace muster::worker {

// Finds the processes of dead attempts, and ends them if wished: SIGTERM, SIGKILL 2 s later, and
// after 5 s more it names those that still live. Reactor thread only.
class Cleaner {
 public:
  using Done = std::function<void(v1::LeftoverResult)>;
  // What is known now; asked before each look, since attempts come and go.
  using Know = std::function<ranks::AttemptKnowledge()>;

  Cleaner(Reactor& reactor, const facts::ProcReader& proc) : reactor_(reactor), proc_(proc) {}

  // Calls `done` once, at once or later.
  void Sweep(bool end, Know know, Done done);

 private:
  struct Running;
  void Look(const std::shared_ptr<Running>& running);

  Reactor& reactor_;
  const facts::ProcReader& proc_;
};

}  // namespace muster::worker
