#include "common/sha256.h"

#include <openssl/evp.h>

namespace muster {

struct Sha256Stream::Context {
  EVP_MD_CTX* md = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(md); }
};

Sha256Stream::Sha256Stream() : context_(std::make_unique<Context>()) {
  EVP_DigestInit_ex(context_->md, EVP_sha256(), nullptr);
}

Sha256Stream::~Sha256Stream() = default;

void Sha256Stream::Add(std::string_view bytes) {
  EVP_DigestUpdate(context_->md, bytes.data(), bytes.size());
}

std::string Sha256Stream::Finish() {
  std::string sum(kSha256Bytes, '\0');
  EVP_DigestFinal_ex(context_->md, reinterpret_cast<unsigned char*>(sum.data()), nullptr);
  return sum;
}

std::string Sha256(std::string_view bytes) {
  Sha256Stream stream;
  stream.Add(bytes);
  return stream.Finish();
}

std::string ToHex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace muster
