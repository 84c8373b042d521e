#include "worker/facts/proc_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "common/unique_fd.h"

namespace muster::facts {
namespace {

// The kernel bounds argv + environ by a quarter of the stack limit; nobody's marker hides behind 8
// MiB.
constexpr size_t kMaxEnviron = 8u << 20;
constexpr size_t kMaxCommand = 300;

std::optional<std::string> ReadProcFile(pid_t pid, const char* name, size_t limit) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + name;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::string text;
  char buffer[16384];
  while (text.size() < limit) {
    const ssize_t n = read(fd.get(), buffer, std::min(sizeof buffer, limit - text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

class RealProcReader : public ProcReader {
 public:
  std::vector<pid_t> Pids() const override {
    std::vector<pid_t> pids;
    DIR* dir = opendir("/proc");
    if (dir == nullptr) return pids;
    while (const dirent* entry = readdir(dir)) {
      char* end = nullptr;
      const long pid = std::strtol(entry->d_name, &end, 10);
      if (pid > 0 && *end == '\0') pids.push_back(static_cast<pid_t>(pid));
    }
    closedir(dir);
    std::sort(pids.begin(), pids.end());
    return pids;
  }

  std::optional<ProcStat> Stat(pid_t pid) const override {
    const auto text = ReadProcFile(pid, "stat", 4096);
    return text ? ParseStat(*text) : std::nullopt;
  }

  std::optional<std::string> Environ(pid_t pid) const override {
    return ReadProcFile(pid, "environ", kMaxEnviron);
  }

  std::string Command(pid_t pid) const override {
    std::string text = ReadProcFile(pid, "cmdline", kMaxCommand).value_or("");
    while (!text.empty() && text.back() == '\0') text.pop_back();
    std::replace(text.begin(), text.end(), '\0', ' ');
    if (!text.empty()) return text;
    const auto stat = Stat(pid);
    return "[" + (stat ? stat->comm : "?") + "]";
  }

  std::string WaitChannel(pid_t pid) const override {
    const std::string text = ReadProcFile(pid, "wchan", 128).value_or("");
    return text == "0" ? "" : text;
  }

  std::optional<uid_t> Uid(pid_t pid) const override {
    struct stat info;
    if (stat(("/proc/" + std::to_string(pid)).c_str(), &info) != 0) return std::nullopt;
    return info.st_uid;
  }
};

}  // namespace

const ProcReader& ProcReader::Real() {
  static const RealProcReader reader;
  return reader;
}

std::optional<ProcStat> ParseStat(const std::string& text) {
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  ProcStat stat;
  stat.pid = static_cast<pid_t>(std::atol(text.c_str()));
  stat.comm = text.substr(open + 1, close - open - 1);
  // After the name: field 3 is the state, 4 the parent, 22 the start time (proc(5)).
  std::vector<std::string> fields;
  size_t at = close + 1;
  while (fields.size() < 20) {
    at = text.find_first_not_of(" \n", at);
    if (at == std::string::npos) return std::nullopt;
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    fields.push_back(text.substr(at, end - at));
    at = end;
  }
  stat.state = fields[0][0];
  stat.ppid = static_cast<pid_t>(std::atol(fields[1].c_str()));
  stat.start_ticks = std::strtoull(fields[19].c_str(), nullptr, 10);
  if (stat.pid <= 0) return std::nullopt;
  return stat;
}

ProcTree::ProcTree(const ProcReader& proc) {
  for (const pid_t pid : proc.Pids()) {
    if (auto stat = proc.Stat(pid)) all_.push_back(std::move(*stat));
  }
  for (size_t i = 0; i < all_.size(); ++i) by_parent_.emplace(all_[i].ppid, i);
}

std::vector<ProcStat> ProcTree::Descendants(pid_t root) const {
  std::vector<ProcStat> found;
  std::vector<pid_t> parents = {root};
  for (size_t i = 0; i < parents.size(); ++i) {
    const auto [first, last] = by_parent_.equal_range(parents[i]);
    for (auto it = first; it != last; ++it) {
      const ProcStat& child = all_[it->second];
      // Reused pids can make a loop in a walk that is not atomic; nobody is his own ancestor.
      if (child.ppid == child.pid || parents.size() > all_.size()) continue;
      parents.push_back(child.pid);
      found.push_back(child);
    }
  }
  return found;
}

}  // namespace muster::facts
