#include "controller/nodes/ssh/known_hosts.h"

#include <absl/strings/escaping.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "controller/nodes/ssh/pattern.h"

namespace muster::nodes::ssh {
namespace {

constexpr std::string_view kHashMagic = "|1|";
constexpr std::string_view kBlanks = " \t";

std::string_view TakeField(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const size_t end = std::min(line.find_first_of(kBlanks), line.size());
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(end);
  return field;
}

bool Decode(std::string_view base64, std::string& bytes) {
  return absl::Base64Unescape({base64.data(), base64.size()}, &bytes);
}

std::string HashName(const std::string& name, const std::string& salt) {
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  unsigned size = 0;
  HMAC(EVP_sha1(), salt.data(), static_cast<int>(salt.size()),
       reinterpret_cast<const unsigned char*>(name.data()), name.size(), digest.data(), &size);
  return {reinterpret_cast<const char*>(digest.data()), size};
}

bool MatchesHashed(const std::string& name, std::string_view field) {
  field.remove_prefix(kHashMagic.size());
  const size_t bar = field.find('|');
  std::string salt;
  std::string hash;
  if (bar == std::string_view::npos || !Decode(field.substr(0, bar), salt) ||
      !Decode(field.substr(bar + 1), hash) || salt.size() != SHA_DIGEST_LENGTH) {
    return false;
  }
  return HashName(name, salt) == hash;
}

bool NamesMatch(const std::string& name, std::string_view field) {
  if (field.substr(0, 1) != "|") return MatchHostList(name, field) == ListMatch::kYes;
  return field.substr(0, kHashMagic.size()) == kHashMagic && MatchesHashed(name, field);
}

// The first field of a key's wire form is its type.
bool BlobHasType(std::string_view blob, std::string_view type) {
  if (blob.size() < 4) return false;
  uint32_t size = 0;
  for (const char c : blob.substr(0, 4)) size = size << 8 | static_cast<unsigned char>(c);
  return size == type.size() && blob.substr(4, size) == type;
}

// rsa keys sign by several algorithms, of which only those with SHA-2 are still safe.
std::string AlgorithmsOf(const std::string& type) {
  return type == "ssh-rsa" ? "rsa-sha2-512,rsa-sha2-256" : type;
}

}  // namespace

std::string PublicKey::Fingerprint() const {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(blob.data()), blob.size(), digest.data());
  std::string text =
      absl::Base64Escape({reinterpret_cast<const char*>(digest.data()), digest.size()});
  text.erase(text.find_last_not_of('=') + 1);
  return "SHA256:" + text;
}

PublicKey ParsePublicKey(std::string_view type, std::string_view base64) {
  PublicKey key;
  if (!Decode(base64, key.blob) || !BlobHasType(key.blob, type)) return {};
  key.type = std::string(type);
  return key;
}

std::vector<KnownKey> FindKnownKeys(std::string_view text, const std::string& file,
                                    const std::string& name) {
  std::vector<KnownKey> found;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    std::string_view names = TakeField(line);
    if (names.empty() || names.front() == '#') continue;
    KnownKey known;
    if (names.front() == '@') {
      if (names == "@cert-authority") {
        known.marker = KnownKey::Marker::kAuthority;
      } else if (names == "@revoked") {
        known.marker = KnownKey::Marker::kRevoked;
      } else {
        continue;
      }
      names = TakeField(line);
    }
    if (!NamesMatch(name, names)) continue;
    const std::string_view type = TakeField(line);
    known.key = ParsePublicKey(type, TakeField(line));
    if (known.key.type.empty()) continue;
    known.file = file;
    known.line = number;
    found.push_back(std::move(known));
  }
  return found;
}

HostKeyVerdict JudgeHostKey(const std::vector<KnownKey>& found, const PublicKey& shown) {
  using Kind = HostKeyVerdict::Kind;
  HostKeyVerdict verdict;
  for (const KnownKey& known : found) {
    if (known.marker == KnownKey::Marker::kAuthority) continue;
    const bool same = known.key == shown;
    if (known.marker == KnownKey::Marker::kRevoked) {
      if (same) return {Kind::kRevoked, &known};
    } else if (same) {
      verdict = {Kind::kKnown, &known};
    } else if (verdict.kind != Kind::kKnown) {
      // Of the keys that it no longer shows, the one of the same type tells most.
      const bool better = verdict.known == nullptr || known.key.type == shown.type;
      verdict = {Kind::kChanged, better ? &known : verdict.known};
    }
  }
  return verdict;
}

std::string KnownHostsLine(const std::string& name, const PublicKey& key, const std::string& salt) {
  const std::string shown = salt.empty() ? name
                                         : std::string(kHashMagic) + absl::Base64Escape(salt) +
                                               "|" + absl::Base64Escape(HashName(name, salt));
  return shown + " " + key.type + " " + absl::Base64Escape(key.blob) + "\n";
}

std::string PreferKnownTypes(const std::vector<KnownKey>& found) {
  std::vector<std::string> types;
  const auto add = [&types](const std::string& type) {
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  };
  const std::vector<std::string> all = {"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384",
                                        "ecdsa-sha2-nistp521", "ssh-rsa"};
  for (const std::string& type : all) {
    const bool known = std::any_of(found.begin(), found.end(), [&type](const KnownKey& one) {
      return one.marker == KnownKey::Marker::kNone && one.key.type == type;
    });
    if (known) add(type);
  }
  for (const std::string& type : all) add(type);
  std::string list;
  for (const std::string& type : types) list += (list.empty() ? "" : ",") + AlgorithmsOf(type);
  return list;
}

}  // namespace muster::nodes::ssh
