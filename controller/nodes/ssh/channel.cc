#include "controller/nodes/ssh/channel.h"

#include "common/status.h"

namespace muster::nodes::ssh {
namespace {

constexpr char kOrigin[] = "127.0.0.1";

absl::StatusOr<ChannelPtr> NewChannel(ssh_session session) {
  ChannelPtr channel(ssh_channel_new(session));
  if (channel == nullptr) return absl::ResourceExhaustedError("no memory for an ssh channel");
  return channel;
}

absl::StatusOr<int> AwaitNamed(ssh_session session, const std::string& what, const Limits& limits,
                               const std::function<int()>& call) {
  auto result = Await(session, SSH_AGAIN, limits, call);
  if (absl::IsCancelled(result.status())) return result;
  return result.ok() ? result : Annotate(result.status(), what);
}

// The session's own end is one thing, a no of the host another.
absl::Status Explain(ssh_session session, const std::string& what, const std::string& denied) {
  const std::string error = LastError(session);
  if (ssh_is_connected(session) == 0) {
    return absl::UnavailableError(what + ": " + error + " after the login");
  }
  return absl::FailedPreconditionError(what + ": " + error + denied);
}

}  // namespace

absl::StatusOr<ChannelPtr> OpenCommand(ssh_session session, const std::string& line,
                                       const Limits& limits) {
  MUSTER_ASSIGN_OR_RETURN(ChannelPtr channel, NewChannel(session));
  MUSTER_ASSIGN_OR_RETURN(
      const int opened, AwaitNamed(session, "open a channel", limits,
                                   [&channel] { return ssh_channel_open_session(channel.get()); }));
  if (opened != SSH_OK) {
    return Explain(session, "open a channel",
                   "; this account may not run commands there, or too many sessions are open "
                   "(MaxSessions)");
  }
  MUSTER_ASSIGN_OR_RETURN(const int started, AwaitNamed(session, "run the command", limits, [&] {
                            return ssh_channel_request_exec(channel.get(), line.c_str());
                          }));
  if (started != SSH_OK) {
    return Explain(session, "run the command", "; this account may not run commands there");
  }
  return channel;
}

absl::StatusOr<ChannelPtr> OpenForward(ssh_session session, const std::string& host, uint16_t port,
                                       const Limits& limits) {
  const std::string what = "reach " + host + " port " + std::to_string(port) + " from there";
  MUSTER_ASSIGN_OR_RETURN(ChannelPtr channel, NewChannel(session));
  MUSTER_ASSIGN_OR_RETURN(const int opened, AwaitNamed(session, what, limits, [&] {
                            return ssh_channel_open_forward(channel.get(), host.c_str(), port,
                                                            kOrigin, 0);
                          }));
  if (opened == SSH_OK) return channel;
  const absl::Status why = Explain(session, what, "; its AllowTcpForwarding must allow ProxyJump");
  // SSH_OPEN_ADMINISTRATIVELY_PROHIBITED, by its number: what an sshd says to it varies.
  const bool forbidden = why.message().find("error (1)") != absl::string_view::npos;
  if (absl::IsFailedPrecondition(why) && !forbidden) {
    return absl::UnavailableError(what + ": " + LastError(session));
  }
  return why;
}

}  // namespace muster::nodes::ssh
