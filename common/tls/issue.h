#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "common/tls/identity.h"

// Makes keys, requests and certificates: ECDSA on P-256, X.509 v3, PEM. CPU work only; any thread.

namespace muster::tls {

struct Validity {
  int64_t not_before_s = 0;  // Unix time
  int64_t not_after_s = 0;
};

// A private key and the certificate of its public half.
struct KeyAndCertificate {
  std::string key_pem;
  std::string certificate_pem;
};

absl::StatusOr<std::string> MakeKey();

// An authority that signs itself.
absl::StatusOr<KeyAndCertificate> MakeAuthority(const std::string& ca, const Validity& validity);

// A PKCS #10 request for `identity`, signed by the key.
absl::StatusOr<std::string> MakeRequest(std::string_view key_pem, const Identity& identity);

// A certificate for `identity` and the public key of the request, which must be signed by that key;
// nothing else is taken from the request. InvalidArgument: the request is damaged, its signature is
// wrong, or it asks for another identity.
absl::StatusOr<std::string> SignRequest(const KeyAndCertificate& authority,
                                        std::string_view request_pem, const Identity& identity,
                                        const Validity& validity);

// InvalidArgument unless the certificate is for this key.
absl::Status CheckKeyFits(std::string_view key_pem, std::string_view certificate_pem);

// Whether one of the authorities has signed the certificate. InvalidArgument: none has.
absl::Status CheckSigned(std::string_view certificate_pem, std::string_view authorities_pem);

}  // namespace muster::tls
