#include "controller/logs/merged_file.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace muster::logs {
namespace {

// How much of a stream is read, tagged and written at a time. More than one longest line.
constexpr size_t kBatch = 256 << 10;
static_assert(kBatch > kMaxMergedLine + 1);
// Room for a tag, in the scan: ranks have at most 10 digits.
constexpr size_t kMaxTag = 32;

}  // namespace

MergedFile::MergedFile(std::string path, uint32_t first_rank, uint32_t num_ranks, int width,
                       const Rotation& rotation, OpenFiles& open_files)
    : first_rank_(first_rank),
      num_ranks_(num_ranks),
      width_(width),
      file_(std::move(path), rotation, open_files),
      positions_(size_t{2} * num_ranks) {}

uint64_t& MergedFile::Position(uint32_t rank, v1::Stream stream) {
  return positions_[size_t{2} * (rank - first_rank_) + (stream == v1::STREAM_STDERR ? 1 : 0)];
}

absl::Status MergedFile::Recover() {
  MUSTER_RETURN_IF_ERROR(file_.Recover().status());
  size_ = 0;
  std::fill(positions_.begin(), positions_.end(), 0);
  bool more = true;
  while (more) {
    MUSTER_ASSIGN_OR_RETURN(more, RecoverSome());
  }
  // A damaged part that was rotated away can't be cut: what comes goes behind it.
  size_ = std::max(size_, file_.base());
  return file_.CutTo(size_);
}

// Counts the lines of one batch from size_ on; false at the end of the good part.
absl::StatusOr<bool> MergedFile::RecoverSome() {
  MUSTER_ASSIGN_OR_RETURN(const std::string batch, file_.Read(size_, kBatch + kMaxTag));
  std::string_view rest = batch;
  while (true) {
    const size_t newline = rest.find('\n');
    if (newline == std::string_view::npos) break;
    const auto line = ParseMergedLine(rest.substr(0, newline), width_);
    if (!line || line->rank < first_rank_ || line->rank - first_rank_ >= num_ranks_) return false;
    Position(line->rank, line->stream) += StreamBytes(*line);
    size_ += newline + 1;
    rest.remove_prefix(newline + 1);
  }
  return rest.size() < batch.size();
}

bool MergedFile::Worthwhile(uint32_t rank, const StreamFile& source, std::string_view fresh) {
  const uint64_t position = Position(rank, source.stream());
  return source.size() >= position + kMaxMergedLine || fresh.find('\n') != std::string_view::npos;
}

absl::Status MergedFile::Merge(uint32_t rank, StreamFile& source, bool ended) {
  uint64_t& position = Position(rank, source.stream());
  while (position < source.size()) {
    const uint64_t left = source.size() - position;
    const auto want = static_cast<size_t>(std::min<uint64_t>(left, kBatch));
    MUSTER_ASSIGN_OR_RETURN(const std::string data, source.Read(position, want));
    if (data.size() < want) {
      return absl::DataLossError("read " + source.path() + ": shorter than what was written");
    }
    std::string lines;
    const MergedLine tag{.rank = rank, .stream = source.stream(), .cut = false, .text = {}};
    const size_t taken = AppendMergedLines(data, ended && want == left, tag, width_, lines);
    if (taken == 0) break;  // the beginning of a line: its end is still to come
    size_t written = 0;
    MUSTER_RETURN_IF_ERROR(file_.MaybeRotate(size_).status());
    if (absl::Status status = file_.Write(size_, lines, written); !status.ok()) {
      // The torn line goes. Should that fail too, the next write goes over it, or Recover cuts it
      // off.
      if (!file_.CutTo(size_).ok()) return Annotate(status, "and could not be cut back");
      return status;
    }
    size_ += lines.size();
    position += taken;
  }
  return absl::OkStatus();
}

absl::Status MergedFile::Sync() {
  MUSTER_ASSIGN_OR_RETURN(const auto fd, file_.Fd());
  if (fdatasync(fd->get()) != 0) return PosixError("sync " + path());
  return absl::OkStatus();
}

}  // namespace muster::logs
