#include "worker/facts/file_sum.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

namespace muster::facts {
namespace {

constexpr uint64_t kBlock = 64 << 10;
constexpr uint64_t kBlocks = 64;

// Adds bytes [offset, offset + count). False when they can't be read.
bool Add(EVP_MD_CTX* digest, int fd, uint64_t offset, uint64_t count, std::vector<char>& buffer) {
  while (count > 0) {
    const ssize_t n = pread(fd, buffer.data(), std::min<uint64_t>(count, buffer.size()),
                            static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = 0;
    if (n <= 0) return false;
    EVP_DigestUpdate(digest, buffer.data(), static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
    count -= static_cast<uint64_t>(n);
  }
  return true;
}

}  // namespace

std::string FileSum(int fd, uint64_t size, uint64_t whole_limit) {
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> digest(EVP_MD_CTX_new(),
                                                                  EVP_MD_CTX_free);
  if (EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) != 1) return "";
  std::vector<char> buffer(kBlock);
  if (size <= std::max(whole_limit, kBlock * kBlocks)) {
    if (!Add(digest.get(), fd, 0, size, buffer)) return "";
  } else {
    for (uint64_t i = 0; i < kBlocks; ++i) {
      const uint64_t offset = (size - kBlock) / (kBlocks - 1) * i;
      const uint64_t at = i + 1 == kBlocks ? size - kBlock : offset;
      if (!Add(digest.get(), fd, at, kBlock, buffer)) return "";
    }
  }
  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  EVP_DigestFinal_ex(digest.get(), sum, &length);
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) {
    hex += "0123456789abcdef"[sum[i] >> 4];
    hex += "0123456789abcdef"[sum[i] & 15];
  }
  return hex;
}

}  // namespace muster::facts
