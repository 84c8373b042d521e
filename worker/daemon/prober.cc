#include "worker/daemon/prober.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "worker/facts/node_facts.h"
#include "worker/facts/port.h"
#include "worker/ranks/utf8.h"
#include "worker/shim/program_path.h"

namespace muster::worker {
namespace {

// A controller that asked and went away must not keep the port for ever.
constexpr std::chrono::minutes kHoldLimit(5);

std::string ErrnoText() {
  return std::strerror(errno);
}

std::string WorkingDirError(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return "working folder " + path + ": " + ErrnoText();
  if (!S_ISDIR(info.st_mode)) return "working folder " + path + " is not a folder";
  if (access(path.c_str(), X_OK) != 0) return "working folder " + path + ": " + ErrnoText();
  return "";
}

// Resolves as the shim's exec will; relative names are relative to the working folder.
void ResolveProgram(const std::string& program, const std::string& working_dir,
                    v1::ProbeResult& result) {
  const char* path_variable = std::getenv("PATH");
  const std::string search = path_variable == nullptr ? shim::kDefaultPath : path_variable;
  std::string reason = "No such file or directory";
  for (const std::string& candidate : shim::ProgramCandidates(program, search)) {
    std::string path = candidate;
    if (!path.starts_with("/")) path.insert(0, working_dir + "/");
    struct stat info;
    if (stat(path.c_str(), &info) != 0) {
      if (errno != ENOENT && errno != ENOTDIR) reason = ErrnoText();
    } else if (S_ISDIR(info.st_mode)) {
      reason = "it is a folder";
    } else if (access(path.c_str(), X_OK) != 0) {
      reason = ErrnoText() + " (make it executable: chmod +x " + path + ")";
    } else {
      result.set_program_path(ranks::ToUtf8(path));
      return;
    }
  }
  std::string where;
  if (program.find('/') == std::string::npos) where = " in PATH=" + search;
  result.set_program_error(ranks::ToUtf8("program " + program + where + ": " + reason));
}

v1::FileFact FileFactOf(const std::string& path) {
  v1::FileFact fact;
  fact.set_path(path);
  struct stat info;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd || fstat(fd.get(), &info) != 0) {
    fact.set_error(path + ": " + ErrnoText());
  } else {
    fact.set_size(S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0);
  }
  return fact;
}

}  // namespace

Prober::Prober(Reactor& reactor, const facts::ProcReader& proc, std::string state_dir)
    : reactor_(reactor), proc_(proc), state_dir_(std::move(state_dir)) {}

Prober::~Prober() {
  for (const auto& [attempt, held] : held_) reactor_.Cancel(held.expiry);
}

v1::ProbeResult Prober::Probe(const v1::Probe& probe, const std::string& attempt) {
  v1::ProbeResult result;
  result.set_probe_id(probe.probe_id());
  if (!probe.working_dir().empty()) {
    result.set_working_dir_error(WorkingDirError(probe.working_dir()));
  }
  if (!probe.program().empty()) ResolveProgram(probe.program(), probe.working_dir(), result);
  if (probe.want_port()) HoldPort(probe, attempt, result);
  for (const std::string& path : probe.readable()) *result.add_files() = FileFactOf(path);
  result.set_realtime_ns(reactor_.clock().RealtimeNs());
  result.set_disk_free_bytes(facts::DiskFreeBytes(state_dir_));
  return result;
}

void Prober::HoldPort(const v1::Probe& probe, const std::string& attempt, v1::ProbeResult& result) {
  const auto it = held_.find(attempt);
  if (it != held_.end() && (probe.port() == 0 || probe.port() == it->second.port)) {
    result.set_port(it->second.port);
    return;
  }
  ReleasePort(attempt);
  facts::HeldPort port = facts::HoldPort(probe.port_address(), probe.port(), proc_);
  if (!port.socket) {
    result.set_port_error(ranks::ToUtf8(port.error));
    return;
  }
  result.set_port(port.port);
  const auto expiry = reactor_.After(kHoldLimit, [this, attempt] { held_.erase(attempt); });
  held_.emplace(attempt, Held{std::move(port.socket), port.port, expiry});
}

void Prober::ReleasePort(const std::string& attempt) {
  const auto it = held_.find(attempt);
  if (it == held_.end()) return;
  reactor_.Cancel(it->second.expiry);
  held_.erase(it);
}

}  // namespace muster::worker
