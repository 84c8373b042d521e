#include "worker/ranks/sweeper.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "common/unique_fd.h"
#include "common/utf8.h"
#include "worker/facts/user_name.h"

namespace muster::ranks {
namespace {

constexpr pid_t kKthreadd = 2;

// Whether the NUL-separated `environment` has exactly this NAME=VALUE.
bool HasVariable(const std::string& environment, const std::string& variable) {
  size_t at = environment.find(variable);
  while (at != std::string::npos) {
    const size_t end = at + variable.size();
    if ((at == 0 || environment[at - 1] == '\0') &&
        (end == environment.size() || environment[end] == '\0')) {
      return true;
    }
    at = environment.find(variable, at + 1);
  }
  return false;
}

std::optional<uint32_t> RankOf(const std::string& environment) {
  const std::string text = '\0' + environment;
  const std::string name = std::string(1, '\0') + "RANK=";
  const size_t at = text.find(name);
  if (at == std::string::npos) return std::nullopt;
  char* end = nullptr;
  const unsigned long rank = std::strtoul(text.c_str() + at + name.size(), &end, 10);
  if (*end != '\0' || end == text.c_str() + at + name.size()) return std::nullopt;
  return static_cast<uint32_t>(rank);
}

}  // namespace

ScanResult FindLeftovers(const facts::ProcReader& proc, const SweepTarget& target) {
  ScanResult result;
  const facts::ProcTree tree(proc);
  if (tree.all().empty()) {
    result.unverified = "/proc could not be read";
    return result;
  }
  std::map<pid_t, uint32_t> in_tree;
  for (const auto& [shim, rank] : target.shims) {
    for (const facts::ProcStat& process : tree.Descendants(shim)) {
      in_tree.emplace(process.pid, rank);
    }
  }
  const std::set<pid_t> in_cgroup(target.cgroup.begin(), target.cgroup.end());
  const uid_t own_uid = getuid();
  int unreadable = 0;
  for (const facts::ProcStat& stat : tree.all()) {
    const pid_t pid = stat.pid;
    if (stat.IsZombie() || stat.ppid == kKthreadd || pid == getpid()) continue;
    if (target.shims.contains(pid)) continue;
    const auto of_shim = in_tree.find(pid);
    const bool kept = of_shim != in_tree.end() || in_cgroup.contains(pid);
    if (!kept && stat.start_ticks < target.created_ticks) continue;
    const auto environment = proc.Environ(pid);
    if (!environment && !kept) {
      // Another user's processes can be ours only by setuid, which needs root's help; our own must
      // answer.
      if (proc.Uid(pid) == own_uid && proc.Stat(pid)) ++unreadable;
      continue;
    }
    if (!kept && !HasVariable(*environment, target.marker)) continue;
    Leftover leftover;
    leftover.pid = pid;
    leftover.start_ticks = stat.start_ticks;
    leftover.uid = proc.Uid(pid).value_or(own_uid);
    leftover.user = ToValidUtf8(facts::UserName(leftover.uid));
    leftover.state = stat.state;
    leftover.command = ToValidUtf8(proc.Command(pid));
    leftover.wait_channel = ToValidUtf8(proc.WaitChannel(pid));
    leftover.in_shim_tree = of_shim != in_tree.end();
    if (leftover.in_shim_tree) {
      leftover.rank = of_shim->second;
    } else if (environment) {
      leftover.rank = RankOf(*environment);
    }
    result.processes.push_back(std::move(leftover));
  }
  if (unreadable > 0 && target.trees_incomplete) {
    result.unverified =
        std::to_string(unreadable) +
        " processes of this user hide their environment, and a lost shim left no other trace";
  }
  return result;
}

void SignalProcess(const facts::ProcReader& proc, const Leftover& leftover, int signal) {
  // The descriptor pins the process before its identity is checked, so a reused pid is never hit.
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, leftover.pid, 0)));
  const auto stat = proc.Stat(leftover.pid);
  if (!stat || stat->start_ticks != leftover.start_ticks) return;
  const auto send = [&](int number) {
    if (pidfd) {
      syscall(SYS_pidfd_send_signal, pidfd.get(), number, nullptr, 0);
    } else {
      kill(leftover.pid, number);
    }
  };
  send(signal);
  if (signal == SIGTERM) send(SIGCONT);
}

}  // namespace muster::ranks
