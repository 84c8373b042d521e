#include "controller/logs/times_reader.h"

#include <fcntl.h>

#include <algorithm>

#include "controller/logs/file_io.h"
#include "controller/logs/times_file.h"

namespace muster::logs {
namespace {

constexpr uint64_t kBlockRecords = 128;

}  // namespace

// Reads records from index `first` on. A file that can't be read is one without times.
void TimesReader::LoadBlock(uint64_t first) {
  block_.clear();
  first_ = first;
  next_ = 0;
  at_end_ = true;
  const absl::StatusOr<UniqueFd> fd = OpenFile(path_, O_RDONLY);
  if (!fd.ok()) return;
  const auto count = CountRecords(fd->get(), path_);
  if (!count.ok() || *count <= first) return;
  const uint64_t wanted = std::min(kBlockRecords, *count - first);
  const auto bytes = ReadAt(fd->get(), kTimesHeaderSize + first * kTimesRecordSize,
                            wanted * kTimesRecordSize, path_);
  if (!bytes.ok()) return;
  for (size_t at = 0; at + kTimesRecordSize <= bytes->size(); at += kTimesRecordSize) {
    block_.push_back(DecodeTimesRecord(bytes->data() + at));
  }
  at_end_ = first + block_.size() == *count;
}

// Goes straight to the record of a first offset far into the stream.
void TimesReader::Find(uint64_t offset) {
  started_ = true;
  const absl::StatusOr<UniqueFd> fd = OpenFile(path_, O_RDONLY);
  if (!fd.ok()) return;
  const auto count = CountRecords(fd->get(), path_);
  if (!count.ok()) return;
  const auto above = FirstRecordAbove(fd->get(), offset, *count, path_);
  if (above.ok() && *above > 0) LoadBlock(*above - 1);
}

std::optional<uint64_t> TimesReader::FirstSince(int64_t realtime_ns) const {
  const absl::StatusOr<UniqueFd> fd = OpenFile(path_, O_RDONLY);
  if (!fd.ok()) return std::nullopt;
  const auto count = CountRecords(fd->get(), path_);
  if (!count.ok() || *count == 0) return std::nullopt;
  const auto found = FirstOffsetSince(fd->get(), realtime_ns, *count, path_);
  if (!found.ok()) return std::nullopt;
  return *found;
}

int64_t TimesReader::TimeAt(uint64_t offset) {
  if (!started_) Find(offset);
  while (true) {
    while (next_ < block_.size() && block_[next_].offset <= offset) {
      current_ = block_[next_++].realtime_ns;
    }
    if (next_ < block_.size() || at_end_) return current_;
    LoadBlock(first_ + block_.size());
  }
}

}  // namespace muster::logs
