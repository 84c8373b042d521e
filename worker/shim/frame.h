#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// The frame around every small binary file and message of the node: magic, version, checksum,
// length, payload. A file that was cut or had any bit flipped is refused. Described in
// docs/formats.md. No abseil: the shim uses it.

namespace muster::shim {

inline constexpr size_t kFrameHeaderSize = 24;
// Upper bound of a payload: the kernel's own limit on argv + environ is far below.
inline constexpr uint64_t kMaxPayload = 64u << 20;

// CRC-32 (IEEE 802.3, as in zip) of `data`.
uint32_t Crc32(std::string_view data);

// `magic` has 8 bytes.
std::string EncodeFrame(std::string_view magic, uint32_t version, std::string_view payload);

// The payload, or nothing and the reason in `error` ("bad checksum").
std::optional<std::string_view> DecodeFrame(std::string_view magic, uint32_t version,
                                            std::string_view frame, std::string& error);

// Appends little-endian numbers and length-prefixed byte strings.
class FieldWriter {
 public:
  void U8(uint8_t v) { Raw(&v, sizeof v); }
  void U32(uint32_t v) { Raw(&v, sizeof v); }
  void U64(uint64_t v) { Raw(&v, sizeof v); }
  void I32(int32_t v) { Raw(&v, sizeof v); }
  void I64(int64_t v) { Raw(&v, sizeof v); }
  void Bytes(std::string_view v);
  std::string Take() { return std::move(out_); }

 private:
  void Raw(const void* data, size_t size) { out_.append(static_cast<const char*>(data), size); }
  std::string out_;
};

// Reads what FieldWriter wrote. After the first field that does not fit, ok() is false and all
// reads give zero.
class FieldReader {
 public:
  explicit FieldReader(std::string_view data) : data_(data) {}
  uint8_t U8() { return Number<uint8_t>(); }
  uint32_t U32() { return Number<uint32_t>(); }
  uint64_t U64() { return Number<uint64_t>(); }
  int32_t I32() { return Number<int32_t>(); }
  int64_t I64() { return Number<int64_t>(); }
  std::string Bytes();
  bool ok() const { return ok_; }
  // Everything was read, and nothing is left over.
  bool Done() const { return ok_ && data_.empty(); }

 private:
  template <typename T>
  T Number() {
    T value{};
    Raw(&value, sizeof value);
    return value;
  }
  void Raw(void* out, size_t size);
  std::string_view data_;
  bool ok_ = true;
};

// Writes `content` to `path` so that a reader sees the old file or the whole new one, also after a
// power cut: a temporary file beside it, fsync, rename. False with the reason in `error`.
bool WriteFileAtomic(const std::string& path, std::string_view content, std::string& error);

// The whole file, or nothing with the reason in `error`. Files above `limit` bytes are refused.
std::optional<std::string> ReadWholeFile(const std::string& path, uint64_t limit,
                                         std::string& error);

}  // namespace muster::shim
