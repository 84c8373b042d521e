#include "controller/nodes/dial_command.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
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
#include "controller/nodes/child_process.h"
#include "controller/nodes/remote_command.h"

namespace muster::nodes {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A program whose output has ended is about to end itself.
constexpr milliseconds kEndSoon{1'000};

std::string ProgramName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

class ProgramCarrier : public Carrier {
 public:
  ProgramCarrier(std::string program, ChildProcess process)
      : program_(std::move(program)), process_(std::move(process)) {}

  std::string LastWords() override {
    const auto wait_status = process_.WaitEnd(milliseconds(200));
    process_.ReadErrors();
    const std::string errors = process_.ErrorTail();
    if (!wait_status) return errors;
    return program_ + " " + DescribeWaitStatus(*wait_status) +
           (errors.empty() ? "" : ": " + errors);
  }

 private:
  const std::string program_;
  ChildProcess process_;
};

bool Contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

struct Advice {
  std::string_view says;
  std::string_view fix;
};

// What ssh says when another try will fail too, and what helps.
constexpr std::array kAdvice = {
    Advice{"Permission denied",
           "set up a key or an agent for it (ssh-copy-id); Muster never asks for a password"},
    Advice{"REMOTE HOST IDENTIFICATION HAS CHANGED",
           "if the host was really made anew, forget its old key with ssh-keygen -R HOST"},
    Advice{"Host key verification failed",
           "connect once by hand to accept its key, or add it to known_hosts"},
    Advice{"Bad configuration option", "correct your ssh configuration"},
    // A name server that does not answer is another matter ("Temporary failure"): it may yet.
    Advice{"Name or service not known",
           "correct the name, or give the host an entry in DNS, /etc/hosts or your ssh "
           "configuration"},
    Advice{"No address associated with hostname", "give the name an address in DNS or /etc/hosts"},
    Advice{"unknown option", "correct the options of this transport"},
};

// Why the program ended before the marker.
absl::Status ExplainEnd(const CommandDial& dial, int wait_status, const std::string& errors) {
  const std::string message = ProgramName(dial.words[0]) + " " + DescribeWaitStatus(wait_status) +
                              " before the worker answered" + (errors.empty() ? "" : ": " + errors);
  const int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
  if (code == 127 && Contains(errors, kNoMusterd)) {
    const std::string folder = std::filesystem::path(dial.musterd).parent_path().string();
    return absl::FailedPreconditionError(message + "; copy musterd and muster-shim to " + folder +
                                         " there, or into a folder of its PATH");
  }
  for (const Advice& advice : kAdvice) {
    if (Contains(errors, advice.says)) {
      return absl::FailedPreconditionError(message + "; " + std::string(advice.fix));
    }
  }
  // The shell's "found, but can't be run", and musterd's own refusals.
  const bool refused = code == 126 || (code == 2 && Contains(errors, "musterd: "));
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

absl::StatusOr<Connection> DialCommand(const CommandDial& dial, const StopSignal& stop) {
  auto started = ChildProcess::Start(dial.words);
  if (!started.ok()) {
    return absl::FailedPreconditionError("start " + std::string(started.status().message()));
  }
  ChildProcess& process = started->process;
  const int socket = started->socket.get();
  const auto deadline = steady_clock::now() + dial.timeout;
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
    return Connection{
        std::move(started->socket),
        std::make_unique<ProgramCarrier>(ProgramName(dial.words[0]), std::move(process))};
  }
  const auto wait_status = ended ? process.WaitEnd(kEndSoon) : std::nullopt;
  process.ReadErrors();
  const std::string errors = process.ErrorTail();
  if (wait_status) {
    absl::Status why = ExplainEnd(dial, *wait_status, errors);
    return absl::Status(why.code(), std::string(why.message()) + Noise(scanner));
  }
  const std::string program = ProgramName(dial.words[0]);
  const std::string tail = (errors.empty() ? "" : ": " + errors) + Noise(scanner);
  if (ended) {
    return absl::UnavailableError(program + " closed its output before the worker answered" + tail);
  }
  return absl::DeadlineExceededError(program + " brought no answer of a worker within " +
                                     std::to_string(dial.timeout.count()) + " ms" + tail);
}

}  // namespace muster::nodes
