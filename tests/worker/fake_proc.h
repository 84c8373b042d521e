#pragma once

#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "worker/facts/proc_reader.h"

namespace muster::ranks {

// A /proc of processes that a test makes up.
class FakeProc : public facts::ProcReader {
 public:
  struct Entry {
    facts::ProcStat stat;
    std::optional<std::string> environment;
    uid_t uid = getuid();
  };
  void Add(pid_t pid, pid_t ppid, char state, std::optional<std::string> environment,
           uint64_t start = 1000) {
    Entry& entry = entries[pid];
    entry.stat = {pid, ppid, state, start, "comm"};
    entry.environment = std::move(environment);
  }
  std::vector<pid_t> Pids() const override {
    std::vector<pid_t> pids;
    for (const auto& [pid, entry] : entries) pids.push_back(pid);
    return pids;
  }
  std::optional<facts::ProcStat> Stat(pid_t pid) const override {
    const auto it = entries.find(pid);
    return it == entries.end() ? std::nullopt : std::optional(it->second.stat);
  }
  std::optional<std::string> Environ(pid_t pid) const override {
    return entries.at(pid).environment;
  }
  std::string Command(pid_t) const override { return "cmd \xff"; }
  std::string WaitChannel(pid_t) const override { return "do_wait"; }
  std::optional<uid_t> Uid(pid_t pid) const override { return entries.at(pid).uid; }

  std::map<pid_t, Entry> entries;
};

inline std::string Environment(const std::vector<std::string>& variables) {
  std::string out;
  for (const std::string& variable : variables) out += variable + '\0';
  return out;
}

}  // namespace muster::ranks
