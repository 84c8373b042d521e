#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/reactor.h"
#include "muster/v1/stage.pb.h"

namespace muster::worker {

// Hands the orders of a transfer to a process of its own (`musterd --stage`) and its reports back,
// so that neither a slow disk nor cryptography stalls the reactor. Reactor thread only.
class Stager {
 public:
  struct Options {
    std::string program = "/proc/self/exe";
    std::string state_dir;
  };
  using Send = std::function<void(const std::string& controller_id, v1::StageReport report)>;

  Stager(Reactor& reactor, Options options, Send send);
  // Ends the processes; what they have verified stays.
  ~Stager();
  Stager(const Stager&) = delete;
  Stager& operator=(const Stager&) = delete;

  void Take(const std::string& controller_id, const v1::StageOrder& order);
  // The controller has gone: its transfers go on for some minutes, in case that it comes back.
  void OnDisconnected(const std::string& controller_id);
  bool Idle() const { return running_.empty(); }

 private:
  struct Running;
  using RunningPtr = std::shared_ptr<Running>;
  RunningPtr Find(const std::string& controller_id, uint64_t transfer) const;
  // Null: it could not be started, and the controller has been told.
  RunningPtr Start(const std::string& controller_id, uint64_t transfer);
  void Write(const RunningPtr& running, const v1::StageOrder& order);
  void Flush(const RunningPtr& running);
  void Read(const RunningPtr& running);
  void End(const RunningPtr& running);
  void Fail(const std::string& controller_id, uint64_t transfer, const std::string& why);

  Reactor& reactor_;
  const Options options_;
  const Send send_;
  std::vector<RunningPtr> running_;
};

}  // namespace muster::worker
