#include "controller/nodes/ssh/handshake.h"

#include "common/status.h"
#include "controller/nodes/ssh/host_trust.h"

namespace muster::nodes::ssh {
namespace {

// Where the processor does AES by itself it carries more than chacha20, libssh's own choice
// (170 against 120 MB/s).
constexpr char kCiphers[] =
    "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes128-ctr,"
    "aes192-ctr,aes256-ctr";

bool HasAes() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("aes") != 0;
#else
  return true;
#endif
}

absl::Status SetOptions(ssh_session session, const Target& target, const HostTrust& trust) {
  // For nothing but its own messages; libssh takes fewer names than resolvers do.
  int result = ssh_options_set(session, SSH_OPTIONS_HOST, "host");
  result |= ssh_options_set(session, SSH_OPTIONS_USER, target.user.c_str());
  result |= ssh_options_set(session, SSH_OPTIONS_HOSTKEYS, trust.Algorithms().c_str());
  result |= ssh_options_set(session, SSH_OPTIONS_COMPRESSION, "no");
  if (HasAes()) {
    result |= ssh_options_set(session, SSH_OPTIONS_CIPHERS_C_S, kCiphers);
    result |= ssh_options_set(session, SSH_OPTIONS_CIPHERS_S_C, kCiphers);
  }
  if (result != 0) return absl::InternalError("set up ssh: " + LastError(session));
  return absl::OkStatus();
}

absl::StatusOr<PublicKey> ShownKey(ssh_session session) {
  ssh_key key = nullptr;
  if (ssh_get_server_publickey(session, &key) != SSH_OK) {
    return absl::InternalError("the host's key: " + LastError(session));
  }
  const KeyPtr owner(key);
  char* base64 = nullptr;
  if (ssh_pki_export_pubkey_base64(key, &base64) != SSH_OK) {
    return absl::InternalError("the host's key can't be read");
  }
  // libssh calls ecdsa keys of all curves alike.
  const char* curve = ssh_pki_key_ecdsa_name(key);
  const bool ecdsa =
      std::string_view(ssh_key_type_to_char(ssh_key_type(key))).substr(0, 5) == "ecdsa";
  const PublicKey shown =
      ParsePublicKey(ecdsa ? curve : ssh_key_type_to_char(ssh_key_type(key)), base64);
  ssh_string_free_char(base64);
  if (shown.type.empty()) return absl::InternalError("the host's key can't be read");
  return shown;
}

absl::Status ExplainFailure(ssh_session session) {
  const std::string error = LastError(session);
  if (ssh_get_serverbanner(session) == nullptr) {
    // What sshd does when too many log in at once.
    return absl::UnavailableError(error +
                                  " before its ssh banner came (MaxStartups of an sshd that many "
                                  "log in to at once, or no sshd at all)");
  }
  if (error.find("kex error") != std::string::npos) {
    return absl::FailedPreconditionError(
        error + "; libssh and this sshd have none in common, use transport openssh");
  }
  return absl::UnavailableError("key exchange: " + error);
}

}  // namespace

absl::StatusOr<SessionPtr> Handshake(UniqueFd fd, const Target& target, const Limits& limits) {
  MUSTER_ASSIGN_OR_RETURN(const HostTrust trust, HostTrust::Load(target));
  SessionPtr session = NewSession();
  if (session == nullptr) return absl::ResourceExhaustedError("no memory for an ssh session");
  MUSTER_RETURN_IF_ERROR(SetOptions(session.get(), target, trust));
  const int descriptor = fd.get();
  if (ssh_options_set(session.get(), SSH_OPTIONS_FD, &descriptor) != 0) {
    return absl::InternalError("set up ssh: " + LastError(session.get()));
  }
  fd.release();  // the session's from its first call on
  const auto connected =
      Await(session.get(), SSH_AGAIN, limits, [&session] { return ssh_connect(session.get()); });
  if (absl::IsDeadlineExceeded(connected.status())) {
    const bool spoke = ssh_get_serverbanner(session.get()) != nullptr;
    return absl::DeadlineExceededError(spoke ? "no end of the key exchange within " +
                                                   limits.Total() + " (the host is " +
                                                   ssh_get_serverbanner(session.get()) + ")"
                                             : "no ssh banner within " + limits.Total() +
                                                   ": the port is open, but sshd says nothing");
  }
  if (absl::IsCancelled(connected.status())) return connected.status();
  if (!connected.ok() || *connected != SSH_OK) return ExplainFailure(session.get());
  MUSTER_ASSIGN_OR_RETURN(const PublicKey shown, ShownKey(session.get()));
  MUSTER_RETURN_IF_ERROR(trust.Check(shown));
  return session;
}

}  // namespace muster::nodes::ssh
