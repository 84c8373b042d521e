#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

// The `.times` file beside each log file: when the bytes of the log were written. Described in
// docs/formats.md; shared by the shim, which writes it, and the spool and the controller, which
// read and write it.
//
//   header  16 bytes  "MUSTTIME", u32 version = 1, u32 zero
//   record  16 bytes  u64 offset, i64 realtime_ns     (little endian)
//
// A record says: the byte at `offset` of the log, and those after it up to the next record, arrived
// at `realtime_ns` of the writing node's clock. Offsets never fall. A file cut in the middle of a
// record is read up to its last whole one.

namespace muster {

inline constexpr std::array<char, 8> kTimesMagic = {'M', 'U', 'S', 'T', 'T', 'I', 'M', 'E'};
inline constexpr uint32_t kTimesVersion = 1;
inline constexpr size_t kTimesHeaderSize = 16;
inline constexpr size_t kTimesRecordSize = 16;

struct TimesRecord {
  uint64_t offset = 0;
  int64_t realtime_ns = 0;

  friend bool operator==(const TimesRecord&, const TimesRecord&) = default;
};

// All our machines are little endian; the static_assert in times_format_test.cc keeps us honest.
inline std::array<char, kTimesHeaderSize> EncodeTimesHeader() {
  std::array<char, kTimesHeaderSize> out{};
  std::memcpy(out.data(), kTimesMagic.data(), kTimesMagic.size());
  std::memcpy(out.data() + 8, &kTimesVersion, 4);
  return out;
}

inline bool IsTimesHeader(const char* data) {
  const auto want = EncodeTimesHeader();
  return std::memcmp(data, want.data(), want.size()) == 0;
}

inline std::array<char, kTimesRecordSize> EncodeTimesRecord(const TimesRecord& record) {
  std::array<char, kTimesRecordSize> out;
  std::memcpy(out.data(), &record.offset, 8);
  std::memcpy(out.data() + 8, &record.realtime_ns, 8);
  return out;
}

inline TimesRecord DecodeTimesRecord(const char* data) {
  TimesRecord record;
  std::memcpy(&record.offset, data, 8);
  std::memcpy(&record.realtime_ns, data + 8, 8);
  return record;
}

}  // namespace muster
