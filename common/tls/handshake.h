#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <openssl/ssl.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "common/tls/certificate.h"

// What is decided and said around a TLS handshake. Stateless.

namespace muster::tls {

// Is the peer of a finished handshake, whose chain OpenSSL has accepted, the one that we expect,
// and are its and its authority's certificate within their time? FailedPrecondition says what is
// wrong, since when, and the command that mends it.
absl::StatusOr<CertificateInfo> CheckPeer(SSL* ssl, const Identity& expected, int64_t now_s);

// Why a TLS call failed, for people; `result` is what SSL_get_error said. FailedPrecondition when
// another try would fail too; Unavailable when the connection broke.
absl::Status ExplainFailure(SSL* ssl, int result, int system_error);

// How a server tells a peer that has a certificate of its authority why it is refused: an HTTP/2
// GOAWAY frame, in whose debug text its clock stands too.
std::string RefusalFrame(const absl::Status& why, int64_t now_s);

inline constexpr size_t kFrameHeader = 9;
inline constexpr size_t kLargestRefusal = 2048;  // the whole frame
// The length of the whole frame if these bytes begin a GOAWAY, else 0: the peer speaks on.
size_t RefusalLength(std::string_view header);
// The refusal as an error of ours; with the clocks' difference if that may be the cause.
absl::Status ReadRefusal(std::string_view frame, int64_t now_s);

}  // namespace muster::tls
