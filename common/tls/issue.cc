#include "common/tls/issue.h"

#include <openssl/ec.h>
#include <openssl/pem.h>

#include <array>

#include "common/status.h"
#include "common/tls/openssl.h"

namespace muster::tls {
namespace {

constexpr long kVersion3 = 2;
constexpr int kLeastSecurityBits = 112;  // as OpenSSL's security level 2
constexpr int kSerialBits = 127;         // positive in 16 bytes

absl::StatusOr<KeyPtr> ParseKey(std::string_view pem) {
  // An empty passphrase, so that an encrypted key fails instead of asking the terminal.
  KeyPtr key(PEM_read_bio_PrivateKey(ReadFrom(pem).get(), nullptr, nullptr, const_cast<char*>("")));
  if (!key) {
    OpenSslReason();
    return absl::InvalidArgumentError("no usable private key (PEM without a passphrase)");
  }
  return key;
}

absl::StatusOr<CertPtr> ParseCertificate(std::string_view pem) {
  CertPtr certificate(PEM_read_bio_X509(ReadFrom(pem).get(), nullptr, nullptr, nullptr));
  if (!certificate) return absl::InvalidArgumentError("no certificate: " + OpenSslReason());
  return certificate;
}

absl::Status AddName(X509_NAME* name, const char* field, const std::string& value) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(value.c_str());
  if (X509_NAME_add_entry_by_txt(name, field, MBSTRING_ASC, bytes, -1, -1, 0) != 1) {
    return OpenSslError(std::string("name ") + field);
  }
  return absl::OkStatus();
}

absl::Status AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  using ExtensionPtr = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return OpenSslError(std::string("extension ") + OBJ_nid2sn(nid));
  }
  return absl::OkStatus();
}

// Everything but names, extensions and signature.
absl::StatusOr<CertPtr> NewCertificate(EVP_PKEY* key, const Validity& validity) {
  CertPtr certificate(X509_new());
  using NumberPtr = std::unique_ptr<BIGNUM, Freer<BN_free>>;
  const NumberPtr serial(BN_new());
  if (!certificate || !serial ||
      BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate.get())) == nullptr ||
      X509_set_version(certificate.get(), kVersion3) != 1 ||
      X509_set_pubkey(certificate.get(), key) != 1 ||
      ASN1_TIME_set(X509_getm_notBefore(certificate.get()), validity.not_before_s) == nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(certificate.get()), validity.not_after_s) == nullptr) {
    return OpenSslError("make a certificate");
  }
  return certificate;
}

absl::StatusOr<std::string> SignAndWrite(X509* certificate, EVP_PKEY* key) {
  if (X509_sign(certificate, key, EVP_sha256()) == 0) return OpenSslError("sign");
  const BioPtr out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(out.get(), certificate) != 1) return OpenSslError("write");
  return TextOf(out.get());
}

// Whom a request names, for the check that it asks for what it gets.
std::string RequestedName(X509_REQ* request) {
  const X509_NAME* name = X509_REQ_get_subject_name(request);
  const int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  if (at < 0) return "";
  const ASN1_STRING* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                     static_cast<size_t>(ASN1_STRING_length(text)));
}

// A common name holds 64 characters at most.
std::string ShortName(const Identity& identity) {
  return identity.Describe().substr(0, 64);
}

}  // namespace

absl::StatusOr<std::string> MakeKey() {
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return OpenSslError("make a key");
  const BioPtr out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return OpenSslError("write a key");
  }
  return TextOf(out.get());
}

absl::StatusOr<KeyAndCertificate> MakeAuthority(const std::string& ca, const Validity& validity) {
  MUSTER_RETURN_IF_ERROR(CheckCaName(ca));
  KeyAndCertificate authority;
  MUSTER_ASSIGN_OR_RETURN(authority.key_pem, MakeKey());
  MUSTER_ASSIGN_OR_RETURN(const KeyPtr key, ParseKey(authority.key_pem));
  MUSTER_ASSIGN_OR_RETURN(const CertPtr certificate, NewCertificate(key.get(), validity));
  X509_NAME* name = X509_get_subject_name(certificate.get());
  MUSTER_RETURN_IF_ERROR(AddName(name, "O", "Muster authority"));
  MUSTER_RETURN_IF_ERROR(AddName(name, "CN", ca));
  if (X509_set_issuer_name(certificate.get(), name) != 1) return OpenSslError("issuer");
  const std::array<std::pair<int, const char*>, 4> extensions = {
      std::pair{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
      std::pair{NID_key_usage, "critical,keyCertSign,cRLSign"},
      std::pair{NID_subject_key_identifier, "hash"},
      std::pair{NID_authority_key_identifier, "keyid:always"}};
  for (const auto& [nid, value] : extensions) {
    MUSTER_RETURN_IF_ERROR(AddExtension(certificate.get(), certificate.get(), nid, value));
  }
  MUSTER_ASSIGN_OR_RETURN(authority.certificate_pem, SignAndWrite(certificate.get(), key.get()));
  return authority;
}

absl::StatusOr<std::string> MakeRequest(std::string_view key_pem, const Identity& identity) {
  MUSTER_ASSIGN_OR_RETURN(const KeyPtr key, ParseKey(key_pem));
  const RequestPtr request(X509_REQ_new());
  if (!request || X509_REQ_set_pubkey(request.get(), key.get()) != 1) {
    return OpenSslError("make a request");
  }
  MUSTER_RETURN_IF_ERROR(
      AddName(X509_REQ_get_subject_name(request.get()), "CN", ShortName(identity)));
  if (X509_REQ_sign(request.get(), key.get(), EVP_sha256()) == 0) return OpenSslError("sign");
  const BioPtr out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509_REQ(out.get(), request.get()) != 1) return OpenSslError("write");
  return TextOf(out.get());
}

absl::StatusOr<std::string> SignRequest(const KeyAndCertificate& authority,
                                        std::string_view request_pem, const Identity& identity,
                                        const Validity& validity) {
  MUSTER_ASSIGN_OR_RETURN(const KeyPtr ca_key, ParseKey(authority.key_pem));
  MUSTER_ASSIGN_OR_RETURN(const CertPtr ca, ParseCertificate(authority.certificate_pem));
  const RequestPtr request(
      PEM_read_bio_X509_REQ(ReadFrom(request_pem).get(), nullptr, nullptr, nullptr));
  if (!request) {
    return absl::InvalidArgumentError("no certificate request (PKCS #10 PEM): " + OpenSslReason());
  }
  EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
  if (key == nullptr || X509_REQ_verify(request.get(), key) != 1) {
    OpenSslReason();
    return absl::InvalidArgumentError("the request is not signed by its own key");
  }
  if (EVP_PKEY_get_security_bits(key) < kLeastSecurityBits) {
    return absl::InvalidArgumentError(
        "its key is too weak: take P-256 (openssl ecparam -name prime256v1 -genkey), or RSA with "
        "2048 bits or more");
  }
  if (const std::string asked = RequestedName(request.get()); asked != ShortName(identity)) {
    return absl::InvalidArgumentError("the request is for '" + asked.substr(0, 80) + "', not for " +
                                      identity.Describe());
  }
  MUSTER_ASSIGN_OR_RETURN(const CertPtr certificate, NewCertificate(key, validity));
  X509_NAME* name = X509_get_subject_name(certificate.get());
  MUSTER_RETURN_IF_ERROR(AddName(name, "O", "Muster"));
  MUSTER_RETURN_IF_ERROR(AddName(name, "CN", ShortName(identity)));
  if (X509_set_issuer_name(certificate.get(), X509_get_subject_name(ca.get())) != 1) {
    return OpenSslError("issuer");
  }
  const std::array<std::pair<int, std::string>, 6> extensions = {
      std::pair{NID_basic_constraints, std::string("critical,CA:FALSE")},
      std::pair{NID_key_usage, std::string("critical,digitalSignature")},
      std::pair{NID_ext_key_usage,
                std::string(identity.role == Role::kController ? "clientAuth" : "serverAuth")},
      std::pair{NID_subject_alt_name, "URI:" + identity.Uri()},
      std::pair{NID_subject_key_identifier, std::string("hash")},
      std::pair{NID_authority_key_identifier, std::string("keyid:always")}};
  for (const auto& [nid, value] : extensions) {
    MUSTER_RETURN_IF_ERROR(AddExtension(certificate.get(), ca.get(), nid, value));
  }
  return SignAndWrite(certificate.get(), ca_key.get());
}

absl::Status CheckKeyFits(std::string_view key_pem, std::string_view certificate_pem) {
  MUSTER_ASSIGN_OR_RETURN(const KeyPtr key, ParseKey(key_pem));
  MUSTER_ASSIGN_OR_RETURN(const CertPtr certificate, ParseCertificate(certificate_pem));
  if (X509_check_private_key(certificate.get(), key.get()) == 1) return absl::OkStatus();
  OpenSslReason();
  return absl::InvalidArgumentError("the certificate is for another key");
}

absl::Status CheckSigned(std::string_view certificate_pem, std::string_view authorities_pem) {
  MUSTER_ASSIGN_OR_RETURN(const CertPtr certificate, ParseCertificate(certificate_pem));
  const BioPtr bio = ReadFrom(authorities_pem);
  bool is_signed = false;
  while (const CertPtr authority{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    is_signed = is_signed || X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) == 1;
  }
  OpenSslReason();
  if (is_signed) return absl::OkStatus();
  return absl::InvalidArgumentError("none of the authorities has signed the certificate");
}

}  // namespace muster::tls
