#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/tls/identity.h"

// What is in our certificates, without OpenSSL's types. Pure.

namespace muster::tls {

struct CertificateInfo {
  Identity identity;          // of an authority: only `ca`
  bool is_authority = false;  // may sign others
  int64_t not_before_s = 0;   // Unix time
  int64_t not_after_s = 0;
  std::string serial;       // hex
  std::string fingerprint;  // SHA-256 of the certificate, "AB:CD:..."
  std::string issuer_key;   // identifier of the key that signed it, hex
  std::string own_key;      // identifier of its own key, hex
};

// Every certificate of a PEM text, in order. InvalidArgument: none, damaged, or not of Muster.
absl::StatusOr<std::vector<CertificateInfo>> ReadCertificates(std::string_view pem);

// Within its time? FailedPrecondition says since when not, and by how much this clock would be
// wrong. `whose`: "certificate of host node1".
absl::Status CheckTime(const CertificateInfo& info, int64_t now_s, const std::string& whose);

// "2026-11-29 21:35 UTC".
std::string FormatTime(int64_t unix_s);
// "400 days", "3 hours", "12 minutes", "40 s": the largest unit that fits.
std::string FormatSpan(int64_t seconds);

}  // namespace muster::tls
