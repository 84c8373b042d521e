#include "worker/shim/rank_child.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "worker/shim/program_path.h"

namespace muster::shim {
namespace {

constexpr int kEventFd = 3;
constexpr int kReportFd = 4;  // closed by a successful exec
constexpr int kFirstFreeFd = 10;

enum class Step : int { kChdir = 1, kExec = 2 };

// What the child writes into the report pipe when it cannot become the rank.
struct Report {
  Step step;
  int error_number;
};

// Everything the child needs, made before the fork so that it allocates nothing.
struct Image {
  std::vector<std::string> candidates;
  std::vector<std::string> variables;
  std::vector<char*> argv;
  std::vector<char*> envp;
  const char* working_dir;
  int fds[5];     // stdin, stdout, stderr, events, report; all >= kFirstFreeFd
  int cgroup_fd;  // -1: none
  std::vector<unsigned char> cpu_mask;  // a kernel's cpu set; empty: not bound
  pid_t shim;
};

std::string SearchPath(const RankSpec& spec) {
  for (const auto& [name, value] : spec.env) {
    if (name == "PATH") return value;
  }
  return kDefaultPath;
}

void RaiseLimit(__rlimit_resource resource) {
  rlimit limit;
  if (getrlimit(resource, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(resource, &limit);
}

// All 64, also the two that glibc keeps for itself and that its posix_spawn leaves ignored: hence
// the plain system calls.
void ResetSignals() {
  constexpr int kSignals = 64;
  constexpr size_t kMaskSize = kSignals / 8;
  const struct {
    void* handler;
    unsigned long flags;
    void* restorer;
    uint64_t mask;
  } by_default = {};  // SIG_DFL is 0
  for (int sig = 1; sig <= kSignals; ++sig) {
    syscall(SYS_rt_sigaction, sig, &by_default, nullptr, kMaskSize);
  }
  const uint64_t none = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, kMaskSize);
}

[[noreturn]] void Give(Step step, int error_number) {
  const Report report = {step, error_number};
  // If even this fails, the parent sees an exit without a report and says so.
  (void)!write(kReportFd, &report, sizeof report);
  _exit(127);
}

[[noreturn]] void RunChild(const Image& image) {
  setsid();
  // The shim may have died before the next line: then nobody would send the signal.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != image.shim) _exit(127);
  if (image.cgroup_fd >= 0) (void)!write(image.cgroup_fd, "0", 1);
  for (int i = 0; i < 5; ++i) dup2(image.fds[i], i);
  fcntl(kReportFd, F_SETFD, FD_CLOEXEC);
  close_range(kReportFd + 1, ~0u, 0);
  RaiseLimit(RLIMIT_NOFILE);
  RaiseLimit(RLIMIT_MEMLOCK);
  // Refused where the cpuset has shrunk meanwhile: then the rank runs where it may.
  if (!image.cpu_mask.empty()) {
    syscall(SYS_sched_setaffinity, 0, image.cpu_mask.size(), image.cpu_mask.data());
  }
  if (chdir(image.working_dir) != 0) Give(Step::kChdir, errno);
  ResetSignals();
  int worst = ENOENT;
  for (const std::string& path : image.candidates) {
    execve(path.c_str(), image.argv.data(), image.envp.data());
    // As execvp: a later folder may have it; "permission denied" is the better reason in the end.
    if (errno == EACCES) {
      worst = EACCES;
    } else if (errno != ENOENT && errno != ENOTDIR) {
      Give(Step::kExec, errno);
    }
  }
  Give(Step::kExec, worst);
}

std::vector<unsigned char> CpuMask(const std::vector<uint32_t>& cpus) {
  constexpr uint32_t kBits = 8;
  constexpr size_t kWord = sizeof(unsigned long);  // the kernel takes whole words
  std::vector<unsigned char> mask;
  for (const uint32_t cpu : cpus) {
    const size_t needed = (cpu / kBits / kWord + 1) * kWord;
    if (mask.size() < needed) mask.resize(needed);
    mask[cpu / kBits] = static_cast<unsigned char>(mask[cpu / kBits] | 1U << cpu % kBits);
  }
  return mask;
}

UniqueFd High(int fd) {
  return UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeFd));
}

// A pipe whose write end has a number that the child's dup2s do not touch.
bool MakePipe(UniqueFd& read_end, UniqueFd& write_end) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return false;
  read_end.reset(fds[0]);
  const UniqueFd low(fds[1]);
  write_end = High(low.get());
  return static_cast<bool>(write_end);
}

std::string ExecError(const RankSpec& spec, int error_number) {
  const std::string& program = spec.argv[0];
  std::string text = "exec " + program + ": " + std::strerror(error_number);
  if (error_number == ENOENT && program.find('/') == std::string::npos) {
    text += " (not found in PATH=" + SearchPath(spec) + ")";
  } else if (error_number == ENOENT) {
    const std::string path = program[0] == '/' ? program : spec.working_dir + "/" + program;
    if (access(path.c_str(), F_OK) == 0)
      text += " (the file exists; the interpreter that it names does not)";
  } else if (error_number == ENOEXEC) {
    text += " (a script needs a first line like #!/bin/sh)";
  }
  return text;
}

}  // namespace

RankChild StartRank(const RankSpec& spec) {
  RankChild child;
  const auto fail = [&child](const std::string& what) {
    child.error = what + ": " + std::strerror(errno);
    child.exit_code = 126;
    return std::move(child);
  };
  Image image;
  image.candidates = ProgramCandidates(spec.argv[0], SearchPath(spec));
  image.variables.reserve(spec.env.size() + 1);
  for (const auto& [name, value] : spec.env) {
    std::string& variable = image.variables.emplace_back(name);
    variable.append("=").append(value);
  }
  image.variables.push_back("MUSTER_EVENT_FD=" + std::to_string(kEventFd));
  for (std::string& variable : image.variables) image.envp.push_back(variable.data());
  image.envp.push_back(nullptr);
  for (const std::string& word : spec.argv) image.argv.push_back(const_cast<char*>(word.c_str()));
  image.argv.push_back(nullptr);
  image.working_dir = spec.working_dir.c_str();
  image.cpu_mask = CpuMask(spec.cpus);
  image.shim = getpid();

  const UniqueFd null_low(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd null = High(null_low.get());
  if (!null) return fail("open /dev/null");
  std::array<UniqueFd, kNumStreams> writers;
  for (size_t i = 0; i < kNumStreams; ++i) {
    if (!MakePipe(child.pipes[i], writers[i])) return fail("pipe");
    fcntl(child.pipes[i].get(), F_SETFL, O_NONBLOCK);
  }
  UniqueFd report_read, report_write;
  if (!MakePipe(report_read, report_write)) return fail("pipe");
  UniqueFd cgroup;
  if (!spec.cgroup_procs.empty()) {
    cgroup.reset(open(spec.cgroup_procs.c_str(), O_WRONLY | O_CLOEXEC));
    if (cgroup) cgroup = High(cgroup.get());
  }
  image.cgroup_fd = cgroup.get();
  const int fds[] = {null.get(), writers[0].get(), writers[1].get(), writers[2].get(),
                     report_write.get()};
  std::memcpy(image.fds, fds, sizeof fds);

  const pid_t pid = fork();
  if (pid < 0) return fail("fork");
  if (pid == 0) RunChild(image);
  report_write.reset();
  Report report;
  ssize_t n;
  do {
    n = read(report_read.get(), &report, sizeof report);
  } while (n < 0 && errno == EINTR);
  if (n == sizeof report) {
    waitpid(pid, nullptr, 0);
    child.error = report.step == Step::kChdir
                      ? "chdir " + spec.working_dir + ": " + std::strerror(report.error_number)
                      : ExecError(spec, report.error_number);
    child.exit_code = report.error_number == ENOENT ? 127 : 126;
    return child;
  }
  child.pid = pid;
  if (cgroup) {
    // The child's own write may have been refused; its place is what counts.
    const std::string path = "/proc/" + std::to_string(pid) + "/cgroup";
    const size_t slash = spec.cgroup_procs.rfind('/');
    const size_t parent = spec.cgroup_procs.rfind('/', slash - 1);
    const std::string leaf = spec.cgroup_procs.substr(parent, slash - parent);
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    char text[4096];
    const ssize_t got = fd ? read(fd.get(), text, sizeof text) : -1;
    child.in_cgroup =
        got > 0 && std::string_view(text, static_cast<size_t>(got)).find(leaf + "\n") !=
                       std::string_view::npos;
  }
  return child;
}

}  // namespace muster::shim
