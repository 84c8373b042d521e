#pragma once

#include <absl/status/status.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

// Owners of OpenSSL's objects, and its errors as ours. For the .cc files of this folder.

namespace muster::tls {

template <auto kFree>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using BioPtr = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using CertPtr = std::unique_ptr<X509, Freer<X509_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, Freer<X509_REQ_free>>;
using ContextPtr = std::unique_ptr<SSL_CTX, Freer<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, Freer<SSL_free>>;

// What OpenSSL says about the last failure of this thread, then forgotten: "no reason given" if
// nothing.
std::string OpenSslReason();

// `what: <OpenSSL's reason>`.
absl::Status OpenSslError(std::string_view what);

// The text for reading; nothing is copied.
BioPtr ReadFrom(std::string_view text);
// What was written to a memory BIO.
std::string TextOf(BIO* bio);

}  // namespace muster::tls
