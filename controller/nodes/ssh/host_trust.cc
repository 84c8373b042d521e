#include "controller/nodes/ssh/host_trust.h"

#include <openssl/rand.h>

#include <algorithm>

#include "common/log.h"
#include "common/status.h"
#include "controller/nodes/ssh/known_hosts_file.h"

namespace muster::nodes::ssh {
namespace {

using Kind = HostKeyVerdict::Kind;

constexpr size_t kSaltBytes = 20;

std::string Shown(const PublicKey& key) {
  return key.type + " " + key.Fingerprint();
}

}  // namespace

absl::StatusOr<HostTrust> HostTrust::Load(const Target& target) {
  HostTrust trust(target);
  for (const auto* files : {&target.user_known_hosts, &target.global_known_hosts}) {
    for (const std::string& file : *files) {
      MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadKnownHosts(file));
      for (KnownKey& key : FindKnownKeys(text, file, target.known_name)) {
        trust.keys_.push_back(std::move(key));
      }
      if (target.known_name_bare.empty()) continue;
      for (KnownKey& key : FindKnownKeys(text, file, target.known_name_bare)) {
        trust.bare_keys_.push_back(std::move(key));
      }
    }
  }
  return trust;
}

absl::Status HostTrust::Check(const PublicKey& shown) const {
  HostKeyVerdict verdict = JudgeHostKey(keys_, shown);
  if (verdict.kind == Kind::kNew) {
    const HostKeyVerdict bare = JudgeHostKey(bare_keys_, shown);
    if (bare.kind == Kind::kKnown || bare.kind == Kind::kRevoked) verdict = bare;
  }
  switch (verdict.kind) {
    case Kind::kKnown:
      return absl::OkStatus();
    case Kind::kRevoked:
      return absl::FailedPreconditionError(
          "host key " + Shown(shown) + " of " + target_.known_name + " is marked as revoked in " +
          verdict.known->Place() + ": somebody may pretend to be this host");
    case Kind::kChanged:
      return CheckChanged(shown, *verdict.known);
    case Kind::kNew:
      return CheckNew(shown);
  }
  return absl::OkStatus();
}

absl::Status HostTrust::CheckChanged(const PublicKey& shown, const KnownKey& known) const {
  const std::string what = "the host key of " + target_.known_name + " has changed: it shows " +
                           Shown(shown) + ", known is " + Shown(known.key) + " (" + known.Place() +
                           ")";
  if (target_.host_key_policy == HostKeyPolicy::kNo) {
    log::Warning(what + "; StrictHostKeyChecking no goes on all the same");
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      what +
      "; somebody may pretend to be this host. If it was really made anew, forget its old "
      "key with: ssh-keygen -R '" +
      target_.known_name + "' -f " + known.file);
}

absl::Status HostTrust::CheckNew(const PublicKey& shown) const {
  const std::string what =
      "host key " + Shown(shown) + " of " + target_.known_name + " is in none of its known_hosts";
  if (target_.host_key_policy == HostKeyPolicy::kYes ||
      target_.host_key_policy == HostKeyPolicy::kAsk) {
    const bool authority = std::any_of(keys_.begin(), keys_.end(), [](const KnownKey& key) {
      return key.marker == KnownKey::Marker::kAuthority;
    });
    if (authority) {
      return absl::FailedPreconditionError(what +
                                           ", only an authority for it, whose certificates "
                                           "need transport openssh");
    }
    return absl::FailedPreconditionError(
        what +
        "; compare it with the host's own (ssh-keygen -lf /etc/ssh/ssh_host_*.pub there) and "
        "connect once by hand, or set StrictHostKeyChecking accept-new");
  }
  if (target_.user_known_hosts.empty()) return absl::OkStatus();
  std::string salt;
  if (target_.hash_known_hosts) {
    salt.resize(kSaltBytes);
    if (RAND_bytes(reinterpret_cast<unsigned char*>(salt.data()), kSaltBytes) != 1) {
      return absl::InternalError("no random bytes");
    }
  }
  const std::string& file = target_.user_known_hosts.front();
  const absl::Status added =
      AppendKnownHosts(file, KnownHostsLine(target_.known_name, shown, salt));
  // As ssh does: the key is new all the same the next time.
  if (added.ok()) {
    log::Info(target_.known_name + ": added " + Shown(shown) + " to " + file);
  } else {
    log::Warning(std::string(added.message()));
  }
  return absl::OkStatus();
}

}  // namespace muster::nodes::ssh
