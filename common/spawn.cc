#include "common/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/status.h"

namespace muster {
namespace {

// Redirections of one spawn.
class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  void Redirect(int from, int to) {
    if (from < 0) {
      posix_spawn_file_actions_addopen(&actions_, to, "/dev/null", O_RDWR, 0);
    } else {
      posix_spawn_file_actions_adddup2(&actions_, from, to);
    }
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class OwnSession {
 public:
  OwnSession() {
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~OwnSession() { posix_spawnattr_destroy(&attributes_); }
  OwnSession(const OwnSession&) = delete;
  OwnSession& operator=(const OwnSession&) = delete;

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

}  // namespace

absl::StatusOr<pid_t> SpawnInOwnSession(const SpawnOptions& options) {
  if (options.words.empty()) return absl::InvalidArgumentError("no program to start");
  std::vector<std::string> words = options.words;
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  FileActions actions;
  actions.Redirect(options.in, STDIN_FILENO);
  actions.Redirect(options.out, STDOUT_FILENO);
  actions.Redirect(options.err, STDERR_FILENO);
  const OwnSession session;
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], actions.get(), session.get(), argv.data(), environ);
  if (error != 0) return PosixError(words[0], error);
  return pid;
}

std::string DescribeWaitStatus(int wait_status) {
  return WIFSIGNALED(wait_status) ? "was ended by signal " + std::to_string(WTERMSIG(wait_status))
                                  : "exited with " + std::to_string(WEXITSTATUS(wait_status));
}

}  // namespace muster
