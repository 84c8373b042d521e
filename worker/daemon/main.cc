// musterd: the worker daemon of one node and user.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/log.h"
#include "common/sha256.h"
#include "common/unique_fd.h"
#include "common/version.h"
#include "worker/daemon/bridge.h"
#include "worker/daemon/old_builds.h"
#include "worker/daemon/options.h"
#include "worker/daemon/other_daemon.h"
#include "worker/daemon/server.h"
#include "worker/daemon/state_dir.h"
#include "worker/facts/helper_main.h"
#include "worker/stage/helper_main.h"

namespace {

using muster::UniqueFd;

constexpr int kCannotServe = 2;

int Fail(std::string_view message) {
  std::fprintf(stderr, "musterd: %.*s\n", static_cast<int>(message.size()), message.data());
  return kCannotServe;
}

int PrintVersion(bool json) {
  if (json) {
    std::printf("{\"program\":\"musterd\",\"version\":\"%s\",\"protocol\":%u}\n", muster::kVersion,
                muster::kProtocol);
  } else {
    std::printf("musterd %s (protocol %u)\n", muster::kVersion, muster::kProtocol);
  }
  return 0;
}

std::filesystem::path Self() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

std::string ShimBeside() {
  return (Self().parent_path() / "muster-shim").string();
}

// Which build this is: what a controller compares with its own.
int PrintChecksum(const std::string& shim) {
  muster::Sha256Stream sum;
  std::vector<char> buffer(1 << 20);
  for (const std::string& path : {shim, std::string("/proc/self/exe")}) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return Fail("read " + path + ": " + std::strerror(errno));
    while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0) {
      sum.Add({buffer.data(), static_cast<size_t>(in.gcount())});
    }
  }
  std::printf("%s\n", muster::ToHex(sum.Finish()).c_str());
  return 0;
}

// Three descriptors a rank, so the usual soft limit of 1024 would not do.
void RaiseFileLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Forks; the parent ends at once, which tells the caller that the daemon listens. Before any thread
// exists.
bool GoToBackground(const std::string& log_path) {
  const pid_t pid = fork();
  if (pid < 0) return false;
  if (pid > 0) _exit(0);
  setsid();
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  const UniqueFd log(open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!null || !log) return false;
  // Also stderr, for the libraries' own messages; the caller's terminal is not kept open.
  return dup2(null.get(), 0) == 0 && dup2(log.get(), 1) == 1 && dup2(log.get(), 2) == 2 &&
         chdir("/") == 0;
}

}  // namespace

int main(int argc, char** argv) {
  // How the daemon asks what may hang: not for people, so not among the options.
  if (argc == 5 && std::string_view(argv[1]) == "--answer-probe") {
    muster::facts::RunProbeHelper(argv[2], argv[3], argv[4]);
  }
  // One transfer of staging, for the daemon: likewise.
  if (argc == 3 && std::string_view(argv[1]) == "--stage") muster::stage::RunStageHelper(argv[2]);
  const auto options =
      muster::worker::ParseOptions(std::vector<std::string>(argv + 1, argv + argc));
  if (!options.ok()) {
    return Fail(std::string(options.status().message()) + "\nTry `musterd --help`.");
  }
  if (options->help) return std::fputs(muster::worker::kHelp, stdout) < 0 ? 1 : 0;
  if (options->version) return PrintVersion(options->json);
  // gRPC must neither follow a proxy from the environment nor hook our forks.
  for (const char* name :
       {"http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY"}) {
    unsetenv(name);
  }
  setenv("GRPC_ENABLE_FORK_SUPPORT", "0", 1);
  const std::string shim = ShimBeside();
  if (access(shim.c_str(), X_OK) != 0) {
    return Fail(shim + ": " + std::strerror(errno) + "; it must lie beside musterd");
  }
  if (options->checksum) return PrintChecksum(shim);
  if (options->bridge) {
    const absl::Status ended = muster::worker::RunBridge(*options);
    return ended.ok() ? 0 : Fail("bridge: " + std::string(ended.message()));
  }
  auto state =
      muster::worker::OpenStateDir(muster::worker::StateDirPath(options->state_dir, options->name));
  if (!state.ok()) return Fail(std::string(state.status().message()));
  const std::string folder = state->path;
  const int lock = state->lock.get();
  RaiseFileLimit();
  muster::worker::Server server(*options, *std::move(state), shim);
  const absl::Status listening = server.Listen();
  if (!listening.ok()) return Fail(std::string(listening.message()));
  const std::string log_path = folder + "/musterd.log";
  if (options->background && !GoToBackground(log_path)) {
    return Fail("go to the background: " + std::string(std::strerror(errno)));
  }
  // For second daemons and bridges.
  const std::string text =
      muster::worker::LockText({.pid = getpid(), .protocol = muster::kProtocol});
  if (ftruncate(lock, 0) != 0 || pwrite(lock, text.data(), text.size(), 0) < 0) {
    return Fail("write " + folder + "/lock: " + std::strerror(errno));
  }
  muster::log::Init("musterd", options->background ? log_path : "");
  muster::worker::TidyBuilds(Self(), muster::worker::kKeepUnusedBuild);
  server.Run();
  return 0;
}
