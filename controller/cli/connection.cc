#include "controller/cli/connection.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "controller/api/connect.h"
#include "controller/api/state_dir.h"
#include "controller/cli/background.h"

namespace muster::cli {
namespace {

// A restarted controller (systemd, an operator) gets this long before a viewer starts one itself.
constexpr auto kReturnTimeout = std::chrono::seconds(5);
constexpr auto kRetryInterval = std::chrono::milliseconds(100);

absl::StatusOr<std::shared_ptr<Client::Stub>> Connect(const std::string& state_dir) {
  auto stub = api::Connect(state_dir);
  if (!stub.ok()) return stub.status();
  return std::shared_ptr<Client::Stub>(*std::move(stub));
}

bool Exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

// A controller leaves its log, its socket or its lock behind.
absl::StatusOr<bool> WasUsed(const std::string& state_dir) {
  std::error_code error;
  const bool empty = std::filesystem::is_empty(state_dir, error);
  if (error == std::errc::permission_denied) {
    return absl::PermissionDeniedError(
        "no access to the controller's folder " + state_dir +
        ": it is another user's; each user has a controller: unset MUSTER_STATE, or name your own");
  }
  return !error && !empty;
}

}  // namespace

std::string StateDir(const std::string& chosen) {
  return std::filesystem::absolute(chosen.empty() ? api::DefaultStateDir() : chosen)
      .lexically_normal()
      .string();
}

Client::Connector ConnectToRunning(const std::string& state_dir) {
  return [state_dir] { return Connect(state_dir); };
}

Client::Connector ConnectOrStart(const std::string& state_dir) {
  return [state_dir, first = true]() mutable -> absl::StatusOr<std::shared_ptr<Client::Stub>> {
    const auto deadline = std::chrono::steady_clock::now() + kReturnTimeout;
    auto stub = Connect(state_dir);
    while (!stub.ok() && !first && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(kRetryInterval);
      stub = Connect(state_dir);
    }
    if (stub.ok()) {
      first = false;
      return stub;
    }
    // An orderly end removes the socket: then somebody wanted the controller to end. A killed one
    // leaves it behind.
    if (!first && !Exists(api::SocketPath(state_dir))) {
      return absl::UnavailableError(
          "the controller was ended; jobs run on. Any command of muster starts it again");
    }
    first = false;
    if (absl::Status started = StartController(state_dir); !started.ok()) return started;
    return Connect(state_dir);
  };
}

Client::Connector ConnectIfUsed(const std::string& state_dir) {
  return [state_dir, connect = ConnectOrStart(state_dir)]() mutable {
    using Result = absl::StatusOr<std::shared_ptr<Client::Stub>>;
    const auto used = WasUsed(state_dir);
    if (!used.ok()) return Result(used.status());
    return *used ? connect()
                 : Result(absl::NotFoundError("no controller has run here yet (" + state_dir +
                                              " is empty)"));
  };
}

}  // namespace muster::cli
