#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace muster {

inline constexpr size_t kSha256Bytes = 32;

// The 32 bytes of the digest. Any thread.
std::string Sha256(std::string_view bytes);

// The digest of bytes that come in parts. One thread at a time.
class Sha256Stream {
 public:
  Sha256Stream();
  ~Sha256Stream();
  void Add(std::string_view bytes);
  // The digest of all that was added. Once.
  std::string Finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// "0a1b...": lower-case hexadecimal digits.
std::string ToHex(std::string_view bytes);

}  // namespace muster
