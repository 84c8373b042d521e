#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

// The seam to /proc: which processes exist, and what they are. Small enough for the shim, so no
// abseil here.

namespace muster::facts {

// What /proc/PID/stat says. `start_ticks` (clock ticks since boot) together with the pid names one
// process for ever.
struct ProcStat {
  pid_t pid = 0;
  pid_t ppid = 0;
  char state = '?';  // R, S, D, T, t, Z, X ...
  uint64_t start_ticks = 0;
  std::string comm;

  // A dead process whose parent has not waited for it: no code runs, nothing is held.
  bool IsZombie() const { return state == 'Z' || state == 'X'; }
};

// Any thread; implementations have no state, or are owned by a test.
class ProcReader {
 public:
  virtual ~ProcReader() = default;
  // All process ids, ascending. Empty when /proc cannot be read.
  virtual std::vector<pid_t> Pids() const = 0;
  // Absent when the process is gone.
  virtual std::optional<ProcStat> Stat(pid_t pid) const = 0;
  // NUL-separated environment the process was started with. Absent when it may not be read or the
  // process is gone.
  virtual std::optional<std::string> Environ(pid_t pid) const = 0;
  // Command line with blanks between the words, or "[comm]"; may hold any bytes. At most 300 bytes.
  virtual std::string Command(pid_t pid) const = 0;
  // Kernel function it sleeps in, "" when unknown.
  virtual std::string WaitChannel(pid_t pid) const = 0;
  // Effective user id; absent when the process is gone.
  virtual std::optional<uid_t> Uid(pid_t pid) const = 0;

  // The machine's /proc.
  static const ProcReader& Real();
};

// Parses the text of /proc/PID/stat; the command name in it may hold blanks and parentheses.
std::optional<ProcStat> ParseStat(const std::string& text);

// All processes of one look at /proc. It is read once, however many trees are asked for.
class ProcTree {
 public:
  explicit ProcTree(const ProcReader& proc);

  // Ascending by pid; empty when /proc cannot be read.
  const std::vector<ProcStat>& all() const { return all_; }
  // All processes below `root` (without it), in the order of the walk: parents before children.
  std::vector<ProcStat> Descendants(pid_t root) const;

 private:
  std::vector<ProcStat> all_;
  std::multimap<pid_t, size_t> by_parent_;  // -> index in all_
};

}  // namespace muster::facts
