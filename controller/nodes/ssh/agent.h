#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/unique_fd.h"
#include "controller/nodes/limits.h"

// The user's ssh agent, by its protocol (draft-miller-ssh-agent).

namespace muster::nodes::ssh {

struct AgentKey {
  std::string blob;
  std::string comment;

  // "ssh-ed25519", "ssh-rsa-cert-v01@openssh.com"; "" for none.
  std::string Type() const;
};

// The body of an answer to a question for keys. Pure. InvalidArgument: it is none.
absl::StatusOr<std::vector<AgentKey>> ParseIdentities(std::string_view answer);
// The body of that answer for these keys. Pure.
std::string FormatIdentities(const std::vector<AgentKey>& keys);

// The kinds of message that are dealt with here.
inline constexpr char kAgentFailure = 5;
inline constexpr char kRequestIdentities = 11;
inline constexpr char kIdentitiesAnswer = 12;
inline constexpr char kSignRequest = 13;

// A connection to an agent. One thread, but for Shutdown.
class Agent {
 public:
  // Many hosts at once can fill its queue of connections; a place there is waited for.
  static absl::StatusOr<Agent> Connect(const std::string& socket_path, const Limits& limits);

  absl::StatusOr<std::vector<AgentKey>> Identities(const Limits& limits);
  // Sends a message's body and returns the answer's.
  absl::StatusOr<std::string> Ask(std::string_view body, const Limits& limits);
  // Ends an Ask that is under way. Any thread.
  void Shutdown() const;

 private:
  explicit Agent(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

// Whole messages on a stream socket, each with its length before it; for both ends. The body is
// bounded. Unavailable: the other end is gone.
absl::Status SendMessage(int fd, std::string_view body, const Limits& limits);
absl::StatusOr<std::string> ReceiveMessage(int fd, const Limits& limits);

}  // namespace muster::nodes::ssh
