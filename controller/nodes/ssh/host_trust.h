#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "controller/nodes/ssh/known_hosts.h"
#include "controller/nodes/ssh/target.h"

namespace muster::nodes::ssh {

// What the known_hosts files of a target know about it, read once before the host shows its key.
// One thread.
class HostTrust {
 public:
  // A file that is not there is empty. The error names one that can't be read.
  static absl::StatusOr<HostTrust> Load(const Target& target);

  // For SSH_OPTIONS_HOSTKEYS: see PreferKnownTypes.
  std::string Algorithms() const { return PreferKnownTypes(keys_); }

  // Whether the key that the host shows may be trusted, by StrictHostKeyChecking; a new one that
  // may be is written down. FailedPrecondition has the fingerprints, the line and the fix.
  absl::Status Check(const PublicKey& shown) const;

 private:
  explicit HostTrust(const Target& target) : target_(target) {}

  absl::Status CheckNew(const PublicKey& shown) const;
  absl::Status CheckChanged(const PublicKey& shown, const KnownKey& known) const;

  const Target& target_;
  std::vector<KnownKey> keys_;       // under the name with port or alias
  std::vector<KnownKey> bare_keys_;  // under the name without port
};

}  // namespace muster::nodes::ssh
