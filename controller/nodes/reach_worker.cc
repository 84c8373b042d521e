#include "controller/nodes/reach_worker.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "common/bridge_marker.h"
#include "common/spawn.h"
#include "common/status.h"
#include "common/version.h"
#include "controller/nodes/remote_command.h"

namespace muster::nodes {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A command whose output has ended is about to end itself.
constexpr milliseconds kEndSoon{1'000};

class ProcessCarrier : public Carrier {
 public:
  explicit ProcessCarrier(std::unique_ptr<RemoteProcess> process) : process_(std::move(process)) {}

  std::string LastWords() override {
    const auto wait_status = process_->WaitEnd(milliseconds(200));
    process_->ReadErrors();
    const std::string errors = process_->ErrorTail();
    if (!wait_status) return errors;
    return process_->Name() + " " + DescribeWaitStatus(*wait_status) +
           (errors.empty() ? "" : ": " + errors);
  }

 private:
  const std::unique_ptr<RemoteProcess> process_;
};

// Why the command ended before the marker.
absl::Status ExplainEnd(const RemoteProcess& process, const ReachOptions& options,
                        int wait_status) {
  const std::string errors = process.ErrorTail();
  const std::string message = process.Name() + " " + DescribeWaitStatus(wait_status) +
                              " before the worker answered" + (errors.empty() ? "" : ": " + errors);
  const int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
  if (code == 127 && errors.find(kNoMusterd) != std::string::npos) {
    const std::string folder = std::filesystem::path(options.musterd).parent_path().string();
    return absl::FailedPreconditionError(message + "; copy musterd and muster-shim to " + folder +
                                         " there, or into a folder of its PATH");
  }
  const std::string_view fix = options.advice == nullptr ? "" : options.advice(errors);
  if (!fix.empty()) return absl::FailedPreconditionError(message + "; " + std::string(fix));
  // The shell's "found, but can't be run", and musterd's own refusals.
  const bool refused = code == 126 || (code == 2 && errors.find("musterd: ") != std::string::npos);
  return refused ? absl::FailedPreconditionError(message) : absl::UnavailableError(message);
}

// Reads up to and with the marker line, and no byte more: what follows is gRPC's.
// OK and found(): done; OK otherwise: nothing more for now.
absl::Status ReadMarker(int socket, BridgeMarkerScanner& scanner, bool& ended) {
  std::array<char, 4096> buffer;
  while (!scanner.found()) {
    const ssize_t n = recv(socket, buffer.data(), buffer.size(), MSG_PEEK);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return absl::OkStatus();
    ended = n <= 0;
    if (ended) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const size_t used,
                            scanner.Feed({buffer.data(), static_cast<size_t>(n)}));
    if (recv(socket, buffer.data(), used, 0) != static_cast<ssize_t>(used)) {
      return PosixError("read the marker");
    }
  }
  return absl::OkStatus();
}

std::string Noise(const BridgeMarkerScanner& scanner) {
  std::string text = scanner.NoiseTail();
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) >= 0x7f) c = ' ';
  }
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return "; it printed: " + text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

absl::Status CheckVersion(const BridgeMarker& marker) {
  if (marker.protocol == kProtocol) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "musterd " + marker.version + " there speaks protocol " + std::to_string(marker.protocol) +
      ", this controller (muster " + kVersion + ") speaks " + std::to_string(kProtocol) +
      ": install the same version on both");
}

}  // namespace

absl::StatusOr<Connection> ReachWorker(StartedProcess started, const ReachOptions& options,
                                       const StopSignal& stop) {
  RemoteProcess& process = *started.process;
  const int socket = started.socket.get();
  const auto deadline = steady_clock::now() + options.timeout;
  BridgeMarkerScanner scanner;
  bool ended = false;
  while (true) {
    MUSTER_RETURN_IF_ERROR(ReadMarker(socket, scanner, ended));
    process.ReadErrors();
    if (scanner.found() || ended) break;
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) break;
    std::array<pollfd, 3> fds = {pollfd{.fd = socket, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = stop.fd(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = process.error_fd(), .events = POLLIN, .revents = 0}};
    poll(fds.data(), fds.size(), static_cast<int>(left.count()));
    if (stop.is_set()) return absl::CancelledError("closed");
  }
  if (scanner.found()) {
    MUSTER_RETURN_IF_ERROR(CheckVersion(scanner.marker()));
    process.DropErrors();
    return Connection{std::move(started.socket),
                      std::make_unique<ProcessCarrier>(std::move(started.process))};
  }
  const auto wait_status = ended ? process.WaitEnd(kEndSoon) : std::nullopt;
  process.ReadErrors();
  if (wait_status) {
    absl::Status why = ExplainEnd(process, options, *wait_status);
    return absl::Status(why.code(), std::string(why.message()) + Noise(scanner));
  }
  const std::string errors = process.ErrorTail();
  const std::string tail = (errors.empty() ? "" : ": " + errors) + Noise(scanner);
  if (ended) {
    return absl::UnavailableError(process.Name() + " closed its output before the worker answered" +
                                  tail);
  }
  return absl::DeadlineExceededError(process.Name() + " brought no answer of a worker within " +
                                     std::to_string(options.timeout.count()) + " ms" + tail);
}

}  // namespace muster::nodes
