#include "worker/ranks/cgroup.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "common/spawn.h"
#include "common/unique_fd.h"
#include "worker/shim/frame.h"

namespace muster::ranks {
namespace {

constexpr long kCgroup2Magic = 0x63677270;
constexpr uint64_t kMaxFile = 16u << 20;

std::string Read(const std::string& path) {
  std::string error;
  return shim::ReadWholeFile(path, kMaxFile, error).value_or("");
}

bool Write(const std::string& path, const std::string& text) {
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd && write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

class NoCgroups : public Cgroups {
 public:
  explicit NoCgroups(std::string why) : why_(std::move(why)) {}
  std::string Create(const std::string&) override { return ""; }
  std::vector<pid_t> Members(const std::string&) override { return {}; }
  void Kill(const std::string&) override {}
  void Remove(const std::string&) override {}
  std::string Describe() const override { return "no cgroup2: " + why_; }

 private:
  const std::string why_;
};

class RealCgroups : public Cgroups {
 public:
  explicit RealCgroups(std::string root) : root_(std::move(root)) {}

  std::string Create(const std::string& attempt_name) override {
    std::string leaf = attempt_name;
    std::replace(leaf.begin(), leaf.end(), '/', ':');
    std::string folder = root_ + "/" + leaf;
    // Another daemon of this user may remove the empty root between the two calls.
    for (int i = 0; i < 3; ++i) {
      mkdir(root_.c_str(), 0755);
      if (mkdir(folder.c_str(), 0755) == 0 || errno == EEXIST) return folder;
    }
    return "";
  }

  std::vector<pid_t> Members(const std::string& folder) override {
    std::vector<pid_t> pids;
    std::istringstream text(Read(folder + "/cgroup.procs"));
    for (pid_t pid; text >> pid;) pids.push_back(pid);
    return pids;
  }

  void Kill(const std::string& folder) override { Write(folder + "/cgroup.kill", "1"); }
  void Remove(const std::string& folder) override {
    rmdir(folder.c_str());
    rmdir(root_.c_str());  // fails while it holds another attempt
  }
  std::string Describe() const override { return "cgroup2 at " + root_; }

 private:
  const std::string root_;
};

// A child that sleeps is moved into a new group below `root` and killed there. "" if all that
// works.
std::string TryForReal(const std::string& root) {
  const std::string group = root + "/try:" + std::to_string(getpid());
  if (mkdir(group.c_str(), 0755) != 0) return "mkdir " + group + ": " + std::strerror(errno);
  std::string problem;
  const auto pid = Spawn({.words = {"/bin/sleep", "60"}});
  if (!pid.ok()) {
    problem = "start " + std::string(pid.status().message());
  } else {
    if (!Write(group + "/cgroup.procs", std::to_string(*pid))) {
      problem = "join " + group + ": " + std::strerror(errno);
    } else if (!Write(group + "/cgroup.kill", "1")) {
      problem = "write " + group + "/cgroup.kill: " + std::strerror(errno);
    }
    if (!problem.empty()) kill(*pid, SIGKILL);
    waitpid(*pid, nullptr, 0);
  }
  rmdir(group.c_str());
  return problem;
}

}  // namespace

std::string FindCgroup2Mount(const std::string& mountinfo) {
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    // proc(5): id parent dev root MOUNT options ... - TYPE source superoptions
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos || line.compare(dash + 3, 8, "cgroup2 ") != 0) continue;
    std::istringstream fields(line);
    std::string skipped;
    std::string root;
    std::string mount;
    fields >> skipped >> skipped >> skipped >> root >> mount;
    if (!mount.empty()) return mount;
  }
  return "";
}

std::string FindOwnCgroup2(const std::string& cgroup) {
  std::istringstream lines(cgroup);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("0::", 0) == 0) return line.substr(3);
  }
  return "";
}

std::unique_ptr<Cgroups> Cgroups::None(const std::string& why) {
  return std::make_unique<NoCgroups>(why);
}

std::unique_ptr<Cgroups> Cgroups::Detect() {
  const std::string mount = FindCgroup2Mount(Read("/proc/self/mountinfo"));
  if (mount.empty()) return None("not mounted");
  // A tmpfs at the usual place takes mkdir too: the magic number tells.
  struct statfs fs;
  if (statfs(mount.c_str(), &fs) != 0 || fs.f_type != kCgroup2Magic) {
    return None(mount + " is no cgroup2 file system");
  }
  std::string own = FindOwnCgroup2(Read("/proc/self/cgroup"));
  if (own == "/") own.clear();
  const std::string root = mount + own + "/muster-" + std::to_string(getuid());
  if (mkdir(root.c_str(), 0755) != 0 && errno != EEXIST) {
    return None("mkdir " + root + ": " + std::strerror(errno));
  }
  const std::string problem = TryForReal(root);
  rmdir(root.c_str());
  if (!problem.empty()) return None(problem);
  return std::make_unique<RealCgroups>(root);
}

}  // namespace muster::ranks
