#include "common/tls/certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>
#include <cstdio>
#include <ctime>

#include "common/status.h"
#include "common/tls/openssl.h"
#include "common/tls/x509_info.h"

namespace muster::tls {
namespace {

struct Unit {
  int64_t seconds;
  const char* name;
};
constexpr std::array kUnits = {Unit{86400, "day"}, Unit{3600, "hour"}, Unit{60, "minute"}};

std::string Hex(const unsigned char* data, size_t size, const char* separator) {
  std::string out;
  for (size_t i = 0; i < size; ++i) {
    std::array<char, 3> byte;
    std::snprintf(byte.data(), byte.size(), "%02X", data[i]);
    out += (i > 0 ? separator : "") + std::string(byte.data());
  }
  return out;
}

std::string Hex(const ASN1_STRING* text) {
  if (text == nullptr) return "";
  return Hex(ASN1_STRING_get0_data(text), static_cast<size_t>(ASN1_STRING_length(text)), "");
}

int64_t UnixTime(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

std::string CommonName(const X509* certificate) {
  const X509_NAME* name = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  if (at < 0) return "";
  const ASN1_STRING* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                     static_cast<size_t>(ASN1_STRING_length(text)));
}

// The one URI among the alternative names.
absl::StatusOr<std::string> AlternativeUri(const X509* certificate) {
  using NamesPtr = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;
  const NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::string uri;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    if (!uri.empty()) return absl::InvalidArgumentError("more than one URI among its names");
    const ASN1_IA5STRING* text = name->d.uniformResourceIdentifier;
    uri.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
               static_cast<size_t>(ASN1_STRING_length(text)));
  }
  if (uri.empty()) return absl::InvalidArgumentError("no muster:// URI among its names");
  return uri;
}

// A role goes with its use in TLS, so that neither can stand for the other even where only one of
// the two is looked at.
absl::Status CheckUse(X509* certificate, Role role) {
  const uint32_t use = X509_get_extended_key_usage(certificate);
  const uint32_t wanted = role == Role::kController ? XKU_SSL_CLIENT : XKU_SSL_SERVER;
  if (use == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError("its key usage does not fit its name");
}

}  // namespace

absl::StatusOr<CertificateInfo> InfoOf(X509* certificate) {
  CertificateInfo info;
  info.is_authority = X509_check_ca(certificate) == 1;
  info.not_before_s = UnixTime(X509_get0_notBefore(certificate));
  info.not_after_s = UnixTime(X509_get0_notAfter(certificate));
  info.serial = Hex(X509_get0_serialNumber(certificate));
  info.issuer_key = Hex(X509_get0_authority_key_id(certificate));
  info.own_key = Hex(X509_get0_subject_key_id(certificate));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1) {
    return OpenSslError("fingerprint");
  }
  info.fingerprint = Hex(digest.data(), size, ":");
  if (info.is_authority) {
    info.identity.ca = CommonName(certificate);
    MUSTER_RETURN_IF_ERROR(CheckCaName(info.identity.ca));
    return info;
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string uri, AlternativeUri(certificate));
  MUSTER_ASSIGN_OR_RETURN(info.identity, ParseIdentity(uri));
  MUSTER_RETURN_IF_ERROR(CheckUse(certificate, info.identity.role));
  return info;
}

absl::StatusOr<std::vector<CertificateInfo>> ReadCertificates(std::string_view pem) {
  const BioPtr bio = ReadFrom(pem);
  std::vector<CertificateInfo> out;
  while (const CertPtr certificate{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    auto info = InfoOf(certificate.get());
    if (!info.ok()) {
      return Annotate(info.status(), "certificate " + std::to_string(out.size() + 1));
    }
    out.push_back(*std::move(info));
  }
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  const bool at_end = ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (out.empty()) return absl::InvalidArgumentError("no certificate in it");
  if (!at_end) return absl::InvalidArgumentError("damaged after its first certificates");
  return out;
}

absl::Status CheckTime(const CertificateInfo& info, int64_t now_s, const std::string& whose) {
  if (now_s < info.not_before_s) {
    return absl::FailedPreconditionError(
        whose + " is not yet valid: it begins " + FormatTime(info.not_before_s) +
        ", and the clock here says " + FormatTime(now_s) + ", at least " +
        FormatSpan(info.not_before_s - now_s) + " too early if the certificate is right");
  }
  if (now_s > info.not_after_s) {
    return absl::FailedPreconditionError(whose + " expired " + FormatTime(info.not_after_s) + ", " +
                                         FormatSpan(now_s - info.not_after_s) +
                                         " ago by the clock here (" + FormatTime(now_s) + ")");
  }
  return absl::OkStatus();
}

std::string FormatTime(int64_t unix_s) {
  const std::time_t time = unix_s;
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 64> text;
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &parts);
  return text.data();
}

std::string FormatSpan(int64_t seconds) {
  for (const Unit& unit : kUnits) {
    if (seconds < unit.seconds) continue;
    const int64_t count = seconds / unit.seconds;
    return std::to_string(count) + " " + unit.name + (count == 1 ? "" : "s");
  }
  return std::to_string(seconds) + " s";
}

}  // namespace muster::tls
