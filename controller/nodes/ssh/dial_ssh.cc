#include "controller/nodes/ssh/dial_ssh.h"

#include <absl/random/random.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/backoff.h"
#include "common/status.h"
#include "controller/nodes/child_process.h"
#include "controller/nodes/ssh/channel.h"
#include "controller/nodes/ssh/channel_process.h"
#include "controller/nodes/ssh/handshake.h"
#include "controller/nodes/ssh/login.h"
#include "controller/nodes/ssh/system_source.h"
#include "controller/nodes/tcp.h"

namespace muster::nodes::ssh {
namespace {

using std::chrono::milliseconds;

// TCP, version line and key exchange together, unless ConnectTimeout says otherwise.
constexpr milliseconds kConnectLimit{10'000};
constexpr milliseconds kFirstPause{200};
constexpr milliseconds kLongestPause{2'000};

// The end of a way to a host, as far as it has come.
struct Stream {
  UniqueFd fd;
  std::unique_ptr<RemoteProcess> carrier;  // null: a plain connection
};

// One try of the whole way.
class Try {
 public:
  Try(const SshDial& dial, const std::vector<Target>& route, Bastions& bastions,
      const StopSignal& stop)
      : dial_(dial), route_(route), bastions_(bastions), stop_(stop) {}

  absl::StatusOr<StartedProcess> Run(const Limits& limits) {
    limits_ = limits;
    Stream stream;
    for (size_t i = 0; i + 1 < route_.size(); ++i) {
      auto next = Hop(std::move(stream), i);
      if (!next.ok()) return Annotate(next.status(), "through " + route_[i].Describe());
      stream = *std::move(next);
    }
    MUSTER_ASSIGN_OR_RETURN(SessionPtr session, LogIn(stream, route_.back()));
    MUSTER_ASSIGN_OR_RETURN(ChannelPtr channel, OpenCommand(session.get(), dial_.command, limits_));
    return ChannelProcess::Start(std::move(session), std::move(channel), std::move(stream.carrier));
  }

  // Whether the failure came from a host that may take us a little later.
  bool thrown_out() const { return thrown_out_; }
  // Waits at bastions do not count.
  const Limits& limits() const { return limits_; }

 private:
  absl::StatusOr<Stream> Hop(Stream stream, size_t i) {
    const Target& hop = route_[i];
    const Target& next = route_[i + 1];
    const auto begin = std::chrono::steady_clock::now();
    const DialGate::Place place = bastions_.Enter(hop.Describe(), stop_);
    if (!place) return absl::CancelledError("closed");
    limits_.deadline += std::chrono::steady_clock::now() - begin;
    MUSTER_ASSIGN_OR_RETURN(SessionPtr session, LogIn(stream, hop));
    MUSTER_ASSIGN_OR_RETURN(ChannelPtr channel,
                            OpenForward(session.get(), next.host, next.port, limits_));
    MUSTER_ASSIGN_OR_RETURN(
        StartedProcess process,
        ChannelProcess::Start(std::move(session), std::move(channel), std::move(stream.carrier)));
    return Stream{.fd = std::move(process.socket), .carrier = std::move(process.process)};
  }

  // `stream` leads to the target, or is empty when it is the first on the way.
  absl::StatusOr<SessionPtr> LogIn(Stream& stream, const Target& target) {
    thrown_out_ = false;
    const Limits connect = limits_.AtMost(target.connect_timeout.value_or(
        std::chrono::duration_cast<std::chrono::seconds>(kConnectLimit)));
    if (!stream.fd) {
      MUSTER_ASSIGN_OR_RETURN(stream, Begin(target, connect));
    }
    auto session = Handshake(std::move(stream.fd), target, connect);
    if (!session.ok()) {
      thrown_out_ = absl::IsUnavailable(session.status());
      return WithCarrier(session.status(), target, stream);
    }
    const absl::Status login = Login(session->get(), target, limits_);
    if (!login.ok()) return WithCarrier(login, target, stream);
    if (stream.carrier != nullptr) stream.carrier->DropErrors();
    return *std::move(session);
  }

  static int FamilyOf(AddressFamily family) {
    if (family == AddressFamily::kInet) return AF_INET;
    return family == AddressFamily::kInet6 ? AF_INET6 : AF_UNSPEC;
  }

  static absl::Status WithFix(const absl::Status& status) {
    const std::string message(status.message());
    if (absl::IsFailedPrecondition(status)) {
      return absl::FailedPreconditionError(
          message +
          "; correct the name, or give the host an entry in DNS, /etc/hosts or as HostName in "
          "your ssh configuration");
    }
    if (!message.ends_with("connection refused")) return status;
    return absl::Status(status.code(), message + "; does sshd run there?");
  }

  static absl::StatusOr<Stream> Begin(const Target& target, const Limits& limits) {
    if (target.proxy_command.empty()) {
      auto fd = ConnectTcp(target.host, target.port, FamilyOf(target.family), limits);
      if (!fd.ok()) return WithFix(fd.status());
      return Stream{.fd = *std::move(fd), .carrier = nullptr};
    }
    MUSTER_ASSIGN_OR_RETURN(
        StartedProcess program,
        ChildProcess::Start({UserShell(), "-c", "exec " + target.proxy_command}));
    return Stream{.fd = std::move(program.socket), .carrier = std::move(program.process)};
  }

  // What the proxy program or the hop before says may be the reason.
  static absl::Status WithCarrier(const absl::Status& status, const Target& target,
                                  const Stream& stream) {
    if (stream.carrier == nullptr || absl::IsCancelled(status)) return status;
    constexpr milliseconds kEndSoon{200};
    stream.carrier->WaitEnd(kEndSoon);
    stream.carrier->ReadErrors();
    const std::string text = stream.carrier->ErrorTail();
    if (text.empty()) return status;
    const std::string who = target.proxy_command.empty() ? "" : "ProxyCommand says: ";
    return absl::Status(status.code(), std::string(status.message()) + " (" + who + text + ")");
  }

  const SshDial& dial_;
  const std::vector<Target>& route_;
  Bastions& bastions_;
  const StopSignal& stop_;
  Limits limits_;
  bool thrown_out_ = false;
};

// So that hosts which were thrown out together do not come back together.
milliseconds Jittered(milliseconds pause) {
  absl::BitGen random;
  return milliseconds(absl::Uniform<int64_t>(random, pause.count() / 2, pause.count() * 3 / 2));
}

}  // namespace

absl::StatusOr<StartedProcess> DialSsh(const SshDial& dial, Bastions& bastions,
                                       const StopSignal& stop) {
  SystemSource source(&stop);
  auto route = ResolveRoute(dial.request, source);
  if (!route.ok()) {
    if (absl::IsCancelled(route.status())) return route.status();
    return absl::FailedPreconditionError("ssh configuration: " +
                                         std::string(route.status().message()));
  }
  Backoff backoff(kFirstPause, kLongestPause);
  Limits limits = StartLimits(dial.timeout, stop);
  while (true) {
    Try attempt(dial, *route, bastions, stop);
    auto started = attempt.Run(limits);
    limits = attempt.limits();
    if (started.ok() || !attempt.thrown_out()) return started;
    const milliseconds pause = Jittered(backoff.Next());
    // Half of the time is enough to tell a busy sshd from a port where there is none.
    if (limits.Left() < dial.timeout / 2 + pause) return started;
    if (stop.WaitFor(pause)) return absl::CancelledError("closed");
  }
}

}  // namespace muster::nodes::ssh
