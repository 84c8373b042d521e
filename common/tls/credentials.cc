#include "common/tls/credentials.h"

#include <openssl/pem.h>
#include <sys/stat.h>

#include <utility>

#include "common/status.h"
#include "common/tls/issue.h"
#include "common/tls/openssl.h"
#include "common/tls/private_file.h"

namespace muster::tls {
namespace {

constexpr long kLongestChain = 32 << 10;  // bytes of a peer's certificates
constexpr unsigned char kHttp2[] = {2, 'h', '2'};

int ChooseHttp2(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
                unsigned int in_size, void*) {
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kHttp2, sizeof kHttp2, in, in_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

absl::StatusOr<ContextPtr> NewContext() {
  ContextPtr context(SSL_CTX_new(TLS_method()));
  if (!context) return OpenSslError("TLS");
  SSL_CTX* raw = context.get();
  if (SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(raw, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_alpn_protos(raw, kHttp2, sizeof kHttp2) != 0) {
    return OpenSslError("TLS 1.3");
  }
  // A resumed session would skip the certificates.
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(raw, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_max_cert_list(raw, kLongestChain);
  SSL_CTX_set_alpn_select_cb(raw, ChooseHttp2, nullptr);
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // OpenSSL judges who signed; time, role and name are judged by CheckPeer, which can say more to
  // a peer of ours than an alert can.
  X509_VERIFY_PARAM* verify = SSL_CTX_get0_param(raw);
  X509_VERIFY_PARAM_set_flags(verify, X509_V_FLAG_NO_CHECK_TIME);
  X509_VERIFY_PARAM_set_purpose(verify, X509_PURPOSE_ANY);
  X509_VERIFY_PARAM_set_depth(verify, 0);  // authorities sign peers themselves
  return context;
}

absl::Status UseIdentity(SSL_CTX* context, const std::string& pem) {
  const CertPtr certificate(PEM_read_bio_X509(ReadFrom(pem).get(), nullptr, nullptr, nullptr));
  const KeyPtr key(
      PEM_read_bio_PrivateKey(ReadFrom(pem).get(), nullptr, nullptr, const_cast<char*>("")));
  if (!certificate || !key || SSL_CTX_use_certificate(context, certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return absl::InvalidArgumentError("key and certificate can't be used: " + OpenSslReason());
  }
  return absl::OkStatus();
}

absl::Status UseTrust(SSL_CTX* context, const std::string& pem) {
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  const BioPtr bio = ReadFrom(pem);
  while (const CertPtr certificate{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    if (X509_STORE_add_cert(store, certificate.get()) != 1) return OpenSslError("trust");
  }
  OpenSslReason();
  return absl::OkStatus();
}

}  // namespace

Credentials::Stamp Credentials::StampOf(const char* name) const {
  struct stat info {};
  if (stat((folder_ + "/" + name).c_str(), &info) != 0) return {};
  return {.inode = info.st_ino,
          .size = info.st_size,
          .changed_ns = info.st_ctim.tv_sec * 1'000'000'000LL + info.st_ctim.tv_nsec};
}

absl::StatusOr<std::shared_ptr<const Credentials::Loaded>> Credentials::Get() {
  absl::MutexLock lock(&mutex_);
  // Before the files are read: a change in between is seen the next time.
  const Stamp identity = StampOf(kIdentityFile);
  const Stamp trust = StampOf(kTrustFile);
  const bool known = loaded_.ok() && identity == identity_stamp_ && trust == trust_stamp_;
  if (!known) {
    loaded_ = Load();
    identity_stamp_ = identity;
    trust_stamp_ = trust;
  }
  return loaded_;
}

absl::StatusOr<std::shared_ptr<const Credentials::Loaded>> Credentials::Load() const {
  const std::string remedy = role_ == Role::kController
                                 ? "; make one with `muster cert init`"
                                 : "; from the controller: `muster cert push HOST`";
  const std::string identity_path = folder_ + "/" + kIdentityFile;
  const std::string trust_path = folder_ + "/" + kTrustFile;
  const auto complain = [&remedy](const absl::Status& status, const std::string& path) {
    if (absl::IsNotFound(status)) {
      return absl::NotFoundError("no certificate yet: " + path + " is missing" + remedy);
    }
    if (!absl::IsInvalidArgument(status)) return status;
    return absl::FailedPreconditionError(path + ": " + std::string(status.message()) + remedy);
  };
  const auto identity = ReadOwnFile(identity_path, true);
  if (!identity.ok()) return complain(identity.status(), identity_path);
  const auto trust = ReadOwnFile(trust_path, false);
  if (!trust.ok()) return complain(trust.status(), trust_path);
  const auto own = ReadCertificates(*identity);
  if (!own.ok()) return complain(own.status(), identity_path);
  if (own->front().is_authority || own->front().identity.role != role_) {
    return complain(
        absl::InvalidArgumentError("a certificate for " + own->front().identity.Describe() +
                                   ", which is another role"),
        identity_path);
  }
  if (const absl::Status fits = CheckKeyFits(*identity, *identity); !fits.ok()) {
    return complain(fits, identity_path);
  }
  const auto authorities = ReadCertificates(*trust);
  if (!authorities.ok()) return complain(authorities.status(), trust_path);
  for (const CertificateInfo& authority : *authorities) {
    if (authority.is_authority && authority.identity.ca == own->front().identity.ca) continue;
    return complain(absl::InvalidArgumentError("holds a certificate that is not of authority '" +
                                               own->front().identity.ca + "'"),
                    trust_path);
  }
  MUSTER_ASSIGN_OR_RETURN(ContextPtr context, NewContext());
  if (absl::Status used = UseIdentity(context.get(), *identity); !used.ok()) {
    return complain(used, identity_path);
  }
  MUSTER_RETURN_IF_ERROR(UseTrust(context.get(), *trust));
  auto loaded = std::make_shared<Loaded>();
  loaded->own = own->front();
  loaded->context = std::shared_ptr<SSL_CTX>(context.release(), SSL_CTX_free);
  return std::shared_ptr<const Loaded>(std::move(loaded));
}

}  // namespace muster::tls
