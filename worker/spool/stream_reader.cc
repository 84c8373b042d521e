#include "worker/spool/stream_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/times_format.h"

namespace muster::spool {
namespace {

off_t RecordPosition(uint64_t index) {
  return static_cast<off_t>(kTimesHeaderSize + index * kTimesRecordSize);
}

bool ReadRecord(int fd, uint64_t index, TimesRecord& record) {
  char bytes[kTimesRecordSize];
  if (pread(fd, bytes, sizeof bytes, RecordPosition(index)) != sizeof bytes) return false;
  record = DecodeTimesRecord(bytes);
  return true;
}

}  // namespace

StreamReader::StreamReader(std::string log_path, std::string times_path, std::string floor_path,
                           size_t stream)
    : log_path_(std::move(log_path)),
      times_path_(std::move(times_path)),
      floor_path_(std::move(floor_path)),
      stream_(stream) {}

uint64_t StreamReader::Floor() {
  if (!looked_for_floors_) {
    if (!log_) log_.reset(open(log_path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!log_) return 0;
    floors_.Open(floor_path_);
    looked_for_floors_ = true;
  }
  return floors_.Read(stream_);
}

void StreamReader::Close() {
  log_.reset();
  times_.reset();
  floors_ = shim::LogFloor();
  looked_for_floors_ = false;
}

bool StreamReader::OpenTimes() {
  if (times_) return true;
  if (times_path_.empty()) return false;
  UniqueFd fd(open(times_path_.c_str(), O_RDONLY | O_CLOEXEC));
  char header[kTimesHeaderSize];
  if (!fd || pread(fd.get(), header, sizeof header, 0) != sizeof header || !IsTimesHeader(header)) {
    return false;
  }
  times_ = std::move(fd);
  return true;
}

uint64_t StreamReader::CountRecords() const {
  struct stat info;
  if (fstat(times_.get(), &info) != 0) return 0;
  const auto size = static_cast<uint64_t>(info.st_size);
  return size < kTimesHeaderSize ? 0 : (size - kTimesHeaderSize) / kTimesRecordSize;
}

uint64_t StreamReader::FindRecord(uint64_t offset) {
  if (offset == next_offset_) return next_record_;
  uint64_t low = 0;
  uint64_t high = CountRecords();
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    TimesRecord record;
    if (!ReadRecord(times_.get(), middle, record)) return low;
    if (record.offset < offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void StreamReader::Fail(const char* what) {
  error_ = std::string(what) + " " + log_path_.substr(log_path_.rfind('/') + 1) + ": " +
           std::strerror(errno);
}

bool StreamReader::Read(uint64_t offset, uint64_t limit, v1::LogChunk& chunk) {
  error_.clear();
  if (!log_) log_.reset(open(log_path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!log_ && errno != ENOENT) Fail("open");
  if (!log_ || limit <= offset) return false;
  std::string& data = *chunk.mutable_data();
  data.resize(std::min(kMaxChunk, limit - offset));
  const ssize_t n = pread(log_.get(), data.data(), data.size(), static_cast<off_t>(offset));
  if (n < 0) Fail("read");
  data.resize(n > 0 ? static_cast<size_t>(n) : 0);
  if (data.empty()) return false;
  if (Floor() > offset) {  // what was read may be a hole by now
    data.clear();
    return false;
  }
  if (OpenTimes()) {
    uint64_t index = FindRecord(offset);
    for (TimesRecord record; ReadRecord(times_.get(), index, record); ++index) {
      if (record.offset >= offset + data.size()) break;
      if (chunk.times_size() == kMaxTimes) {
        // Many times may share one offset (a full disk): those are dropped, so that the chunk is
        // never empty.
        if (record.offset > offset) {
          data.resize(record.offset - offset);
          break;
        }
        continue;
      }
      v1::WriteTime* time = chunk.add_times();
      time->set_offset(record.offset);
      time->set_realtime_ns(record.realtime_ns);
    }
    next_record_ = index;
  }
  chunk.set_offset(offset);
  next_offset_ = offset + data.size();
  return true;
}

}  // namespace muster::spool
