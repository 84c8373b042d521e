#include "controller/nodes/reach_worker.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "common/bridge_marker.h"
#include "common/spawn.h"
#include "common/status.h"
#include "common/version.h"
#include "controller/nodes/bootstrap_script.h"
#include "controller/nodes/remote_command.h"

namespace muster::nodes {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A command whose output has ended is about to end itself.
constexpr milliseconds kEndSoon{1'000};
// The bootstrap script asks for muster-shim and musterd, once each.
constexpr int kMostRequests = 2;

class ProcessCarrier : public Carrier {
 public:
  explicit ProcessCarrier(std::unique_ptr<RemoteProcess> process) : process_(std::move(process)) {}

  std::string LastWords() override {
    const auto wait_status = process_->WaitEnd(milliseconds(200));
    process_->ReadErrors();
    std::string errors = process_->ErrorTail();
    if (!wait_status) return errors;
    return process_->Name() + " " + DescribeWaitStatus(*wait_status) +
           (errors.empty() ? "" : ": " + errors);
  }

 private:
  const std::unique_ptr<RemoteProcess> process_;
};

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

// From the process's start to the marker, on one thread.
class Reach {
 public:
  Reach(StartedProcess started, const ReachOptions& options, const StopSignal& stop)
      : process_(std::move(started.process)),
        socket_(std::move(started.socket)),
        options_(options),
        stop_(stop) {}

  absl::StatusOr<Connection> Run() {
    Extend();
    script_ = ForRemote(BootstrapScript({.name = options_.name,
                                         .musterd = options_.programs->musterd(),
                                         .builds = options_.programs->Builds()}));
    unsent_ = script_;
    while (true) {
      MUSTER_RETURN_IF_ERROR(ReadLines());
      process_->ReadErrors();
      if (scanner_.found()) return Finish();
      if (!ended_) SendSome();
      if (ended_) return ExplainEnd();
      const auto left = std::chrono::ceil<milliseconds>(deadline_ - steady_clock::now());
      if (left.count() <= 0) return ExplainSilence();
      Wait(left);
      if (stop_.is_set()) return absl::CancelledError("closed");
    }
  }

 private:
  // A host that takes a byte now and then must not hold its place for ever.
  void Extend() { deadline_ = std::min(steady_clock::now() + options_.timeout, push_deadline_); }

  void Wait(milliseconds limit) {
    const auto interest = static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT);
    std::array<pollfd, 3> fds = {
        pollfd{.fd = socket_.get(), .events = interest, .revents = 0},
        pollfd{.fd = stop_.fd(), .events = POLLIN, .revents = 0},
        pollfd{.fd = process_->error_fd(), .events = POLLIN, .revents = 0}};
    poll(fds.data(), fds.size(), static_cast<int>(limit.count()));
  }

  // Reads up to and with the marker line, and no byte more: what follows is gRPC's.
  absl::Status ReadLines() {
    std::array<char, 4096> buffer;
    while (!scanner_.found()) {
      const ssize_t n = recv(socket_.get(), buffer.data(), buffer.size(), MSG_PEEK);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return absl::OkStatus();
      ended_ = n <= 0;
      if (ended_) return absl::OkStatus();
      MUSTER_ASSIGN_OR_RETURN(const size_t used,
                              scanner_.Feed({buffer.data(), static_cast<size_t>(n)}));
      if (recv(socket_.get(), buffer.data(), used, 0) != static_cast<ssize_t>(used)) {
        return PosixError("read the marker");
      }
      if (const auto request = scanner_.TakeRequest()) MUSTER_RETURN_IF_ERROR(Answer(*request));
    }
    return absl::OkStatus();
  }

  absl::Status Answer(const ProgramRequest& request) {
    if (!unsent_.empty()) return absl::InternalError("the host asks before it has got the last");
    if (++requests_ > kMostRequests) {
      return absl::FailedPreconditionError(
          "the host asks for the worker's programs again and again: what it runs is not the script "
          "that it was sent");
    }
    MUSTER_ASSIGN_OR_RETURN(content_,
                            options_.programs->Content(request.arch, request.file, request.gzip));
    if (!std::exchange(pushing_, true)) {
      push_deadline_ = steady_clock::now() + options_.push_limit;
      if (options_.on_push) options_.on_push();
    }
    size_line_ = std::to_string(content_->size()) + "\n";
    unsent_ = size_line_;
    next_ = *content_;
    pushed_before_ += sent_;
    sent_ = 0;
    Extend();
    return absl::OkStatus();
  }

  void SendSome() {
    while (!unsent_.empty()) {
      const ssize_t n = send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      ended_ = n < 0;
      if (ended_) return;
      unsent_.remove_prefix(static_cast<size_t>(n));
      sent_ += static_cast<size_t>(n);
      if (pushing_) Extend();
      if (unsent_.empty()) unsent_ = std::exchange(next_, {});
    }
  }

  absl::StatusOr<Connection> Finish() {
    MUSTER_RETURN_IF_ERROR(CheckVersion(scanner_.marker()));
    process_->DropErrors();
    return Connection{std::move(socket_), std::make_unique<ProcessCarrier>(std::move(process_))};
  }

  // When it went wrong, and what the host said.
  std::string When() const {
    if (!pushing_) return " before the worker answered";
    return " while the worker was pushed (" + std::to_string((pushed_before_ + sent_) / 1024) +
           " KiB sent)";
  }

  // Why the process ended before the marker.
  absl::Status ExplainEnd() {
    const auto wait_status = process_->WaitEnd(kEndSoon);
    process_->ReadErrors();
    const std::string errors = process_->ErrorTail();
    const std::string tail = (errors.empty() ? "" : ": " + errors);
    if (!wait_status) {
      return absl::UnavailableError(process_->Name() + " closed its output" + When() + tail +
                                    Noise(scanner_));
    }
    const std::string message =
        process_->Name() + " " + DescribeWaitStatus(*wait_status) + When() + tail;
    const int code = WIFEXITED(*wait_status) ? WEXITSTATUS(*wait_status) : -1;
    const std::string_view fix = options_.advice == nullptr ? "" : options_.advice(errors);
    if (!fix.empty()) {
      return absl::FailedPreconditionError(message + "; " + std::string(fix) + Noise(scanner_));
    }
    if (code == kBootstrapFailed && errors.find(kBootstrapSays) != std::string::npos) {
      return absl::FailedPreconditionError(message);
    }
    // The shell's "not found" and "can't be run", and musterd's own refusals.
    const bool refused =
        code == 126 || code == 127 || (code == 2 && errors.find("musterd: ") != std::string::npos);
    return absl::Status(
        refused ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kUnavailable,
        message + Noise(scanner_));
  }

  absl::Status ExplainSilence() {
    const std::string errors = process_->ErrorTail();
    if (steady_clock::now() >= push_deadline_) {
      return absl::DeadlineExceededError(process_->Name() + " took too long for the worker: " +
                                         std::to_string(options_.push_limit.count() / 1000) +
                                         " s are its limit" + When());
    }
    return absl::DeadlineExceededError(process_->Name() + " brought no answer of a worker within " +
                                       std::to_string(options_.timeout.count()) + " ms" +
                                       (pushing_ ? When() : "") +
                                       (errors.empty() ? "" : ": " + errors) + Noise(scanner_));
  }

  std::unique_ptr<RemoteProcess> process_;
  UniqueFd socket_;
  const ReachOptions& options_;
  const StopSignal& stop_;
  steady_clock::time_point deadline_;
  steady_clock::time_point push_deadline_ = steady_clock::time_point::max();
  BridgeMarkerScanner scanner_;
  bool ended_ = false;

  std::string script_;
  std::string size_line_;
  std::shared_ptr<const std::string> content_;
  std::string_view unsent_;  // of script_, size_line_ or *content_
  std::string_view next_;    // follows unsent_
  bool pushing_ = false;
  int requests_ = 0;
  size_t sent_ = 0;           // of the script or the program under way
  size_t pushed_before_ = 0;  // of the programs before it
};

}  // namespace

absl::StatusOr<Connection> ReachWorker(StartedProcess started, const ReachOptions& options,
                                       const StopSignal& stop) {
  return Reach(std::move(started), options, stop).Run();
}

}  // namespace muster::nodes
