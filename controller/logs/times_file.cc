#include "controller/logs/times_file.h"

#include <unistd.h>

#include "common/status.h"
#include "controller/logs/file_io.h"

namespace muster::logs {
namespace {

uint64_t RecordPosition(uint64_t index) {
  return kTimesHeaderSize + index * kTimesRecordSize;
}

absl::StatusOr<TimesRecord> ReadRecord(int fd, uint64_t index, const std::string& path) {
  char bytes[kTimesRecordSize];
  MUSTER_ASSIGN_OR_RETURN(const size_t n,
                          ReadInto(fd, RecordPosition(index), bytes, kTimesRecordSize, path));
  if (n != kTimesRecordSize) return absl::DataLossError("read " + path + ": cut short");
  return DecodeTimesRecord(bytes);
}

// The number of the first record for which `holds`, which once true stays so; `num_records`: none.
template <typename Holds>
absl::StatusOr<uint64_t> FirstRecord(int fd, uint64_t num_records, const std::string& path,
                                     const Holds& holds) {
  uint64_t low = 0;
  uint64_t high = num_records;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    MUSTER_ASSIGN_OR_RETURN(const TimesRecord record, ReadRecord(fd, middle, path));
    if (holds(record)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

absl::Status Truncate(int fd, uint64_t size, const std::string& path) {
  if (ftruncate(fd, static_cast<off_t>(size)) != 0) return PosixError("truncate " + path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<uint64_t> CountRecords(int fd, const std::string& path) {
  char header[kTimesHeaderSize];
  MUSTER_ASSIGN_OR_RETURN(const size_t n, ReadInto(fd, 0, header, kTimesHeaderSize, path));
  if (n != kTimesHeaderSize || !IsTimesHeader(header)) return 0;
  MUSTER_ASSIGN_OR_RETURN(const uint64_t size, FileSize(fd, path));
  return (size - kTimesHeaderSize) / kTimesRecordSize;
}

absl::StatusOr<uint64_t> FirstRecordAbove(int fd, uint64_t offset, uint64_t num_records,
                                          const std::string& path) {
  return FirstRecord(fd, num_records, path,
                     [&](const TimesRecord& record) { return record.offset > offset; });
}

absl::StatusOr<uint64_t> FirstOffsetSince(int fd, int64_t realtime_ns, uint64_t num_records,
                                          const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const uint64_t first,
                          FirstRecord(fd, num_records, path, [&](const TimesRecord& record) {
                            return record.realtime_ns >= realtime_ns;
                          }));
  if (first == num_records) return UINT64_MAX;
  MUSTER_ASSIGN_OR_RETURN(const TimesRecord record, ReadRecord(fd, first, path));
  return record.offset;
}

absl::StatusOr<TimesTail> RepairTimes(int fd, uint64_t log_size, const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const uint64_t count, CountRecords(fd, path));
  TimesTail tail;
  tail.file_size = kTimesHeaderSize;
  if (count == 0) {
    MUSTER_RETURN_IF_ERROR(Truncate(fd, 0, path));
    const auto header = EncodeTimesHeader();
    size_t written = 0;
    MUSTER_RETURN_IF_ERROR(WriteAt(fd, 0, {header.data(), header.size()}, path, written));
    return tail;
  }
  uint64_t keep = 0;
  if (log_size > 0) {
    MUSTER_ASSIGN_OR_RETURN(keep, FirstRecordAbove(fd, log_size - 1, count, path));
  }
  if (keep > 0) {
    MUSTER_ASSIGN_OR_RETURN(const TimesRecord last, ReadRecord(fd, keep - 1, path));
    tail.next_offset = last.offset + 1;
  }
  tail.file_size = RecordPosition(keep);
  MUSTER_RETURN_IF_ERROR(Truncate(fd, tail.file_size, path));
  return tail;
}

absl::Status AppendTimes(int fd, const std::vector<TimesRecord>& records, TimesTail& tail,
                         const std::string& path) {
  std::string bytes;
  uint64_t next = tail.next_offset;
  for (const TimesRecord& record : records) {
    if (record.offset < next) continue;
    const auto encoded = EncodeTimesRecord(record);
    bytes.append(encoded.data(), encoded.size());
    next = record.offset + 1;
  }
  if (bytes.empty()) return absl::OkStatus();
  size_t written = 0;
  MUSTER_RETURN_IF_ERROR(WriteAt(fd, tail.file_size, bytes, path, written));
  // After an error the next call writes over what got through.
  tail.file_size += bytes.size();
  tail.next_offset = next;
  return absl::OkStatus();
}

}  // namespace muster::logs
