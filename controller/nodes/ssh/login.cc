#include "controller/nodes/ssh/login.h"

#include <string>
#include <vector>

#include "common/status.h"
#include "controller/nodes/ssh/agent_relay.h"
#include "controller/nodes/ssh/identities.h"

namespace muster::nodes::ssh {
namespace {

// The keys named in a message; an agent may have dozens.
constexpr size_t kMostNamed = 8;

std::string Join(const std::vector<std::string>& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i == kMostNamed) return text + ", " + std::to_string(parts.size() - i) + " more";
    text += (i == 0 ? "" : ", ") + parts[i];
  }
  return text;
}

std::string MethodNames(int methods) {
  std::vector<std::string> names;
  if ((methods & SSH_AUTH_METHOD_PUBLICKEY) != 0) names.push_back("publickey");
  if ((methods & SSH_AUTH_METHOD_PASSWORD) != 0) names.push_back("password");
  if ((methods & SSH_AUTH_METHOD_INTERACTIVE) != 0) names.push_back("keyboard-interactive");
  if ((methods & SSH_AUTH_METHOD_HOSTBASED) != 0) names.push_back("hostbased");
  if ((methods & SSH_AUTH_METHOD_GSSAPI_MIC) != 0) names.push_back("gssapi-with-mic");
  return Join(names);
}

class LoginAttempt {
 public:
  LoginAttempt(ssh_session session, const Target& target, const Limits& limits)
      : session_(session), target_(target), limits_(limits) {}

  absl::Status Run() {
    MUSTER_ASSIGN_OR_RETURN(identities_, CollectIdentities(target_, limits_));
    for (const Identity& identity : identities_.all) {
      tried_.push_back(identity.name);
      auto result = Try(identity);
      if (!result.ok()) return Failed(result.status());
      if (*result == SSH_AUTH_SUCCESS) return absl::OkStatus();
      if (*result == SSH_AUTH_PARTIAL) return NeedsMore();
      if (*result == SSH_AUTH_ERROR && identity.key == nullptr && ssh_is_connected(session_)) {
        // Its owner said no, or it is locked: the host has heard nothing of it.
        tried_.back() += " (the agent did not sign)";
        continue;
      }
      if (*result == SSH_AUTH_ERROR) return Broken();
      const int methods = ssh_userauth_list(session_, nullptr);
      if (methods != 0 && (methods & SSH_AUTH_METHOD_PUBLICKEY) == 0) break;
    }
    if (!tried_.empty()) return Refused();
    auto result = Await(session_, SSH_AUTH_AGAIN, limits_,
                        [this] { return ssh_userauth_none(session_, nullptr); });
    if (!result.ok()) return Failed(result.status());
    if (*result == SSH_AUTH_SUCCESS) return absl::OkStatus();
    return *result == SSH_AUTH_ERROR ? Broken() : Refused();
  }

 private:
  absl::StatusOr<int> Try(const Identity& identity) {
    if (identity.key != nullptr) {
      // Signed at once, without the question whether this key would do: a round trip less.
      return Await(session_, SSH_AUTH_AGAIN, limits_,
                   [&] { return ssh_userauth_publickey(session_, nullptr, identity.key.get()); });
    }
    if (relay_ == nullptr) {
      MUSTER_ASSIGN_OR_RETURN(relay_, AgentRelay::Start(std::move(*identities_.agent), limits_));
      ssh_set_agent_socket(session_, relay_->TakeSocket().release());
    }
    relay_->Offer({.blob = identity.blob, .comment = "offered"});
    return Await(session_, SSH_AUTH_AGAIN, limits_,
                 [this] { return ssh_userauth_agent(session_, nullptr); });
  }

  std::string Who() const { return "login as " + target_.user + " on " + target_.host; }

  std::string Report() const {
    std::string text;
    text += tried_.empty() ? "there was no key to try" : "tried " + Join(tried_);
    if (!identities_.skipped.empty()) text += "; not tried: " + Join(identities_.skipped);
    if (!target_.unused.empty()) {
      text += "; not used by this transport: " + Join(target_.unused) + " (openssh does)";
    }
    return text;
  }

  absl::Status Failed(const absl::Status& why) const {
    if (absl::IsUnavailable(why)) return Broken();
    if (!absl::IsDeadlineExceeded(why)) return why;
    return absl::DeadlineExceededError(Who() + ": no answer within " + limits_.Total() + "; " +
                                       Report());
  }

  absl::Status Refused() const {
    const std::string methods = MethodNames(ssh_userauth_list(session_, nullptr));
    return absl::FailedPreconditionError(
        Who() + " refused: " + Report() + (methods.empty() ? "" : "; the host takes " + methods) +
        "; set up a key or an agent for it (ssh-copy-id); Muster never asks for a password");
  }

  absl::Status NeedsMore() const {
    return absl::FailedPreconditionError(
        Who() + ": the key was taken, but the host wants more (" +
        MethodNames(ssh_userauth_list(session_, nullptr)) +
        "), which a person would have to answer; use transport openssh with ControlMaster");
  }

  absl::Status Broken() const {
    const std::string error = LastError(session_);
    if (error.find("Too many authentication failures") != std::string::npos) {
      return absl::FailedPreconditionError(
          Who() + " refused after " + std::to_string(tried_.size()) +
          " keys, more than its MaxAuthTries: " + Report() +
          "; name the right key with IdentityFile in your ssh configuration");
    }
    return absl::UnavailableError(Who() + ": " + error + "; " + Report());
  }

  ssh_session const session_;
  const Target& target_;
  const Limits& limits_;
  Identities identities_;
  std::unique_ptr<AgentRelay> relay_;
  std::vector<std::string> tried_;
};

}  // namespace

absl::Status Login(ssh_session session, const Target& target, const Limits& limits) {
  return LoginAttempt(session, target, limits).Run();
}

}  // namespace muster::nodes::ssh
