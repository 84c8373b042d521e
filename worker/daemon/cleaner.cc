#include "worker/daemon/cleaner.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "worker/ranks/sweeper.h"

namespace muster::worker {
namespace {

constexpr std::chrono::seconds kGrace(2);
constexpr std::chrono::seconds kKillLimit(5);
constexpr std::chrono::milliseconds kPoll(100);

v1::Survivor ToProto(const ranks::MarkedProcess& marked) {
  v1::Survivor out;
  out.set_pid(static_cast<uint32_t>(marked.process.pid));
  out.set_uid(marked.process.uid);
  out.set_user(marked.process.user);
  out.set_command(marked.process.command);
  out.set_state(std::string(1, marked.process.state));
  out.set_wait_channel(marked.process.wait_channel);
  if (marked.process.rank) out.set_rank(*marked.process.rank);
  out.set_attempt(marked.mark.Name());
  return out;
}

bool FolderExists(const std::string& path) {
  return !path.empty() && access(path.c_str(), F_OK) == 0;
}

}  // namespace

struct Cleaner::Running {
  bool end = false;
  Know know;
  Done done;
  Reactor::TimePoint began;
  std::map<std::pair<pid_t, uint64_t>, v1::Survivor> told;  // got SIGTERM
};

void Cleaner::Sweep(bool end, Know know, Done done) {
  const auto running = std::make_shared<Running>();
  running->end = end;
  running->know = std::move(know);
  running->done = std::move(done);
  running->began = reactor_.clock().Now();
  Look(running);
}

void Cleaner::Look(const std::shared_ptr<Running>& running) {
  const ranks::AttemptKnowledge known = running->know();
  const auto age = reactor_.clock().Now() - running->began;
  v1::LeftoverResult result;
  if (proc_.Pids().empty()) result.set_error("/proc could not be read");
  std::vector<ranks::MarkedProcess> dead;
  for (ranks::MarkedProcess& marked : ranks::FindMarked(proc_)) {
    const bool is_dead = ranks::IsDead(marked, known, FolderExists(marked.attempt_folder));
    const bool own = marked.mark.tag == known.tag && marked.mark.controller == known.controller;
    if (is_dead) {
      *result.add_dead() = ToProto(marked);
      dead.push_back(std::move(marked));
    } else if (!own) {
      *result.add_live() = ToProto(marked);
    }
  }
  if (!running->end || dead.empty() || age >= kGrace + kKillLimit) {
    for (const auto& told : running->told) {
      const bool lives = std::any_of(dead.begin(), dead.end(), [&](const auto& marked) {
        return std::make_pair(marked.process.pid, marked.process.start_ticks) == told.first;
      });
      if (!lives) *result.add_ended() = told.second;
    }
    running->done(std::move(result));
    return;
  }
  for (const ranks::MarkedProcess& marked : dead) {
    const auto key = std::make_pair(marked.process.pid, marked.process.start_ticks);
    const bool fresh = running->told.emplace(key, ToProto(marked)).second;
    if (age >= kGrace) {
      ranks::SignalProcess(proc_, marked.process, SIGKILL);
    } else if (fresh) {
      ranks::SignalProcess(proc_, marked.process, SIGTERM);
    }
  }
  reactor_.After(kPoll, [this, running] { Look(running); });
}

}  // namespace muster::worker
