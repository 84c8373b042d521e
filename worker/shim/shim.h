#pragma once

#include <array>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/clock.h"
#include "common/unique_fd.h"
#include "worker/facts/proc_reader.h"
#include "worker/shim/rank_spec.h"
#include "worker/shim/shim_status.h"
#include "worker/shim/stream_pump.h"

namespace muster::shim {

// The parent of one rank: a single-threaded poll loop over the daemon's socket, the rank's three
// pipes and its children. It belongs to nobody: the daemon may die and come back, and finds it by
// its socket. It ends by itself once the rank has ended, nobody holds the pipes and no descendant
// is left; until then it keeps the leftovers in its own tree (it is their subreaper), so that they
// can be found and ended.
class Shim {
 public:
  // The working directory is the rank folder. `listener` is a listening SOCK_SEQPACKET socket.
  Shim(RankSpec spec, UniqueFd listener, const Clock& clock, const facts::ProcReader& proc);

  // Runs until the end; the program's exit code.
  int Run();

 private:
  bool Setup();
  void FailSetup(const std::string& error);
  void Poll();
  void Accept();
  void ReadCommands();
  void Obey(ShimCommand command, std::string_view rest);
  void Acknowledge(std::string_view fields);
  void Start();
  void Reap();
  void PumpAll();
  bool AnyWaits() const;
  bool IsRank(const facts::ProcStat& process) const;
  void Terminate();
  void Kill();
  bool MayEnd();
  // Brings status_ up to date, tells the daemon what it has not seen, and records what is final.
  void Publish(bool urgent);
  void Refresh();
  void Tell(bool urgent);
  // At the rank's end, and again when its streams and its tree have ended too.
  void Record();

  const RankSpec spec_;
  const Clock& clock_;
  const facts::ProcReader& proc_;
  UniqueFd listener_;
  UniqueFd client_;  // the newest daemon; an older one is gone or replaced
  UniqueFd child_signals_;
  LogFloor floors_;
  std::array<std::unique_ptr<StreamPump>, kNumStreams> pumps_;
  ShimStatus status_;
  ShimStatus sent_;
  bool sent_any_ = false;
  bool quit_ = false;
  int recorded_ = 0;  // how many of: rank ended, streams drained, no child left
  std::set<std::pair<pid_t, uint64_t>> terminated_;  // pid and start time
  std::chrono::steady_clock::time_point last_sent_{};
  std::chrono::steady_clock::time_point client_lost_{};
  std::chrono::steady_clock::time_point moved_{};  // when no log's quota was full
};

}  // namespace muster::shim
