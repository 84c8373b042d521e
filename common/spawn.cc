#include "common/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/status.h"
#include "common/unique_fd.h"

namespace muster {
namespace {

// What posix_spawn does in the child before exec.
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
  void CloseFrom(int first) { posix_spawn_file_actions_addclosefrom_np(&actions_, first); }
  void ChangeFolder(const std::string& folder) {
    posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str());
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class Attributes {
 public:
  explicit Attributes(SpawnOptions::Group group) {
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (group == SpawnOptions::Group::kOwn) flags |= POSIX_SPAWN_SETPGROUP;
    if (group == SpawnOptions::Group::kOwnSession) flags |= POSIX_SPAWN_SETSID;
    posix_spawnattr_setflags(&attributes_, static_cast<int16_t>(flags));
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

// As exec wants them; the words must outlive it. exec does not change them.
std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace

absl::StatusOr<pid_t> Spawn(const SpawnOptions& options) {
  if (options.words.empty()) return absl::InvalidArgumentError("no program to start");
  FileActions actions;
  actions.Redirect(options.in, STDIN_FILENO);
  actions.Redirect(options.out, STDOUT_FILENO);
  actions.Redirect(options.err, STDERR_FILENO);
  // dup2 onto itself would keep the close-on-exec flag, so such a one gets another number first.
  std::vector<UniqueFd> moved;
  for (const auto& [ours, theirs] : options.pass) {
    if (ours == theirs) moved.emplace_back(fcntl(ours, F_DUPFD_CLOEXEC, theirs + 1));
    actions.Redirect(ours == theirs ? moved.back().get() : ours, theirs);
  }
  if (options.close_others) actions.CloseFrom(STDERR_FILENO + 1);
  if (!options.folder.empty()) actions.ChangeFolder(options.folder);
  const Attributes attributes(options.group);
  const std::vector<char*> argv = Pointers(options.words);
  std::vector<char*> variables;
  if (options.environment) variables = Pointers(*options.environment);
  char** const environment = options.environment ? variables.data() : environ;
  const std::string& program = options.program.empty() ? options.words[0] : options.program;
  pid_t pid = -1;
  const auto spawn = options.program.empty() ? posix_spawnp : posix_spawn;
  const int error =
      spawn(&pid, program.c_str(), actions.get(), attributes.get(), argv.data(), environment);
  if (error != 0) return PosixError(program, error);
  return pid;
}

std::vector<std::string> JoinEnvironment(
    const std::vector<std::pair<std::string, std::string>>& environment) {
  std::vector<std::string> out;
  out.reserve(environment.size());
  for (const auto& [name, value] : environment) {
    out.push_back(name);
    out.back().append("=").append(value);
  }
  return out;
}

std::string DescribeWaitStatus(int wait_status) {
  return WIFSIGNALED(wait_status) ? "was ended by signal " + std::to_string(WTERMSIG(wait_status))
                                  : "exited with " + std::to_string(WEXITSTATUS(wait_status));
}

}  // namespace muster
