#pragma once

#include <string>
#include <string_view>
#include <vector>

// known_hosts files as sshd(8) describes them. Pure.

namespace muster::nodes::ssh {

struct PublicKey {
  std::string type;  // "ssh-ed25519"
  std::string blob;  // as on the wire

  bool operator==(const PublicKey& other) const { return blob == other.blob; }
  // "SHA256:..." as ssh-keygen -l prints it.
  std::string Fingerprint() const;
};

// "ssh-ed25519 AAAA..."; an empty type: this is no key.
PublicKey ParsePublicKey(std::string_view type, std::string_view base64);

struct KnownKey {
  enum class Marker { kNone, kAuthority, kRevoked };
  Marker marker = Marker::kNone;
  PublicKey key;
  std::string file;
  int line = 0;

  std::string Place() const { return file + ":" + std::to_string(line); }
};

// The keys that a file has for a host: plain, wildcard and hashed names. Lines that can't be read
// are passed over, as ssh does.
std::vector<KnownKey> FindKnownKeys(std::string_view text, const std::string& file,
                                    const std::string& name);

struct HostKeyVerdict {
  enum class Kind { kKnown, kNew, kChanged, kRevoked };
  Kind kind = Kind::kNew;
  const KnownKey* known = nullptr;  // the line that says so; null for kNew
};
// What the keys found for a host say about the one that it has shown.
HostKeyVerdict JudgeHostKey(const std::vector<KnownKey>& found, const PublicKey& shown);

// A line for a host; with `salt` (20 bytes) its name is hashed.
std::string KnownHostsLine(const std::string& name, const PublicKey& key, const std::string& salt);

// The signature algorithms for which a host should be asked, those of its known keys first: it then
// shows the key that we know. As a list of names with commas.
std::string PreferKnownTypes(const std::vector<KnownKey>& found);

}  // namespace muster::nodes::ssh
