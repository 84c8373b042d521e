#include "common/tls/handshake.h"

#include <openssl/err.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "common/status.h"
#include "common/tls/openssl.h"
#include "common/tls/x509_info.h"

namespace muster::tls {
namespace {

constexpr unsigned char kGoAway = 7;
constexpr char kInadequateSecurity = 12;
constexpr size_t kGoAwayFields = 8;  // last stream, error code
constexpr std::string_view kRefusalMark = "muster ";
constexpr size_t kLongestReason = 1500;
constexpr int64_t kLatestTime = 1'000'000'000'000;
constexpr int64_t kClockTolerance = 30;  // seconds: no certificate is refused for less

std::string Remedy(const Identity& identity) {
  return identity.role == Role::kController
             ? "; on the controller's machine: `muster cert rotate --controller`"
             : "; renew it with `muster cert push " + identity.host + "`";
}

absl::Status Refuse(const std::string& why) {
  return absl::FailedPreconditionError(why);
}

// The alert that the peer sent, in our words; empty: no alert.
std::string AlertText(int reason) {
  switch (reason) {
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "it does not trust the authority of our certificate: the two sides have certificates "
             "of different authorities (`muster cert list` shows ours)";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return "it wants a certificate and got none";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
      return "it refuses our certificate";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "it says that our certificate has expired";
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
      return "it could not verify our signature";
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      return "it does not speak TLS 1.3";
    default:
      return "";
  }
}

}  // namespace

absl::StatusOr<CertificateInfo> CheckPeer(SSL* ssl, const Identity& expected, int64_t now_s) {
  if (SSL_get_verify_result(ssl) != X509_V_OK) return Refuse("its certificate was not verified");
  const STACK_OF(X509)* chain = SSL_get0_verified_chain(ssl);
  if (chain == nullptr || sk_X509_num(chain) < 2) return Refuse("it showed no certificate");
  const auto info = InfoOf(sk_X509_value(chain, 0));
  if (!info.ok()) {
    return Refuse("its certificate is none of Muster's: " + std::string(info.status().message()));
  }
  if (info->is_authority) return Refuse("it shows an authority's certificate as its own");
  if (info->identity != expected) {
    return Refuse("its certificate is for " + info->identity.Describe() + " of authority '" +
                  info->identity.ca + "', not for " + expected.Describe() + " of authority '" +
                  expected.ca + "'");
  }
  const absl::Status in_time =
      CheckTime(*info, now_s, "the certificate of " + info->identity.Describe());
  if (!in_time.ok()) {
    return Refuse(std::string(in_time.message()) +
                  (now_s > info->not_after_s ? Remedy(info->identity) : "; set the clocks right"));
  }
  const auto authority = InfoOf(sk_X509_value(chain, 1));
  if (!authority.ok()) return Refuse("its authority is none of Muster's");
  MUSTER_RETURN_IF_ERROR(CheckTime(
      *authority, now_s, "the certificate of authority '" + authority->identity.ca + "'"));
  return *info;
}

absl::Status ExplainFailure(SSL* ssl, int result, int system_error) {
  const unsigned long code = ERR_peek_last_error();
  const int reason = ERR_GET_REASON(code);
  const std::string text = OpenSslReason();
  if (const long verified = SSL_get_verify_result(ssl); verified != X509_V_OK) {
    return Refuse(std::string("its certificate is not signed by an authority that we trust (") +
                  X509_verify_cert_error_string(verified) + ")");
  }
  if (result == SSL_ERROR_ZERO_RETURN || (result == SSL_ERROR_SYSCALL && system_error == 0) ||
      reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    return absl::UnavailableError("the other side closed the connection");
  }
  if (result == SSL_ERROR_SYSCALL) return absl::UnavailableError(std::strerror(system_error));
  if (const std::string alert = AlertText(reason); !alert.empty()) return Refuse(alert);
  switch (reason) {
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return Refuse("it showed no certificate");
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
      return Refuse("it does not speak TLS");
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_NO_PROTOCOLS_AVAILABLE:
      return Refuse("it does not speak TLS 1.3");
    default:
      return absl::UnavailableError("TLS: " + text);
  }
}

std::string RefusalFrame(const absl::Status& why, int64_t now_s) {
  const std::string text = std::string(kRefusalMark) + std::to_string(now_s) + " " +
                           std::string(why.message().substr(0, kLongestReason));
  const size_t length = kGoAwayFields + text.size();
  std::string frame(kFrameHeader + kGoAwayFields, '\0');
  frame[0] = static_cast<char>(length >> 16);
  frame[1] = static_cast<char>(length >> 8);
  frame[2] = static_cast<char>(length);
  frame[3] = kGoAway;
  frame[kFrameHeader + kGoAwayFields - 1] = kInadequateSecurity;
  return frame + text;
}

size_t RefusalLength(std::string_view header) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(header[at]); };
  if (header.size() < kFrameHeader || byte(3) != kGoAway) return 0;
  const size_t length = size_t{byte(0)} << 16 | size_t{byte(1)} << 8 | byte(2);
  return std::min(kFrameHeader + length, kLargestRefusal);
}

absl::Status ReadRefusal(std::string_view frame, int64_t now_s) {
  frame.remove_prefix(std::min(frame.size(), kFrameHeader + kGoAwayFields));
  if (!frame.starts_with(kRefusalMark)) return absl::UnavailableError("it refused the connection");
  frame.remove_prefix(kRefusalMark.size());
  int64_t their_time = 0;
  const auto [end, error] = std::from_chars(frame.data(), frame.data() + frame.size(), their_time);
  if (error != std::errc() || their_time < 0 || their_time > kLatestTime) {
    return absl::UnavailableError("it refused the connection");
  }
  std::string text(frame.substr(static_cast<size_t>(end - frame.data())));
  // It goes to a terminal.
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }, ' ');
  const int64_t offset = their_time - now_s;
  std::string clocks;
  if (std::abs(offset) > kClockTolerance) {
    clocks = "; its clock is " + FormatSpan(std::abs(offset)) +
             (offset < 0 ? " behind" : " ahead of") +
             " this machine's: set it right there (`chronyc makestep`)";
  }
  return Refuse("it refuses us:" + text + clocks);
}

}  // namespace muster::tls
