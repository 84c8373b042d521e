#include "tests/bench/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace muster::bench {
namespace {

constexpr std::chrono::milliseconds kSample{5};

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// VmHWM of a live process, in MiB; 0 when it is gone. (The ru_maxrss of a child counts its parent.)
double PeakMib(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

}  // namespace

ChildUsage RunChild(const std::vector<std::string>& words,
                    const std::function<void(int fd)>& feed) {
  ::signal(SIGPIPE, SIG_IGN);
  int pipe[2] = {-1, -1};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (feed) {
    if (::pipe2(pipe, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
    ::posix_spawn_file_actions_adddup2(&actions, pipe[0], STDIN_FILENO);
  } else {
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
  }
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const auto start = std::chrono::steady_clock::now();
  const int failed = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error("start " + words[0] + ": " + std::strerror(failed));
  ChildUsage usage;
  std::atomic<bool> ended = false;
  std::thread sampler([&] {
    while (!ended) {
      usage.peak_mib = std::max(usage.peak_mib, PeakMib(pid));
      std::this_thread::sleep_for(kSample);
    }
  });
  if (feed) {
    ::close(pipe[0]);
    feed(pipe[1]);
    ::close(pipe[1]);
  }
  int status = 0;
  rusage used{};
  ::wait4(pid, &status, 0, &used);
  usage.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  usage.cpu_seconds = Seconds(used.ru_utime) + Seconds(used.ru_stime);
  ended = true;
  sampler.join();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(words[0] + " failed");
  }
  return usage;
}

}  // namespace muster::bench
