#include "trainer/tools/text_chunks.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <utility>

#include "trainer/data/data_error.h"
#include "trainer/tools/byte_counts.h"

namespace muster::tools {
namespace {

using data::DataError;

constexpr size_t kNone = std::string::npos;
// A cut point may begin this many bytes before bytes that were searched in vain.
constexpr size_t kOverlap = 3;

// End of the line that starts at `at`, and where the next one starts.
struct LineEnd {
  size_t end;
  size_t next;
};

// `newline`: the first \n from `at` on, or the size of the text.
LineEnd FindLineEnd(std::string_view text, size_t at, size_t newline) {
  const size_t carriage = text.substr(at, newline - at).find('\r');
  if (carriage == kNone) return {newline, std::min(newline + 1, text.size())};
  const size_t end = at + carriage;
  return {end, end + (end + 1 == newline && newline < text.size() ? 2 : 1)};
}

// Behind the last line that is empty, or npos. Such a line ends a line break before it, so that
// two breaks stand side by side: \n\n, \n\r\n, \r\r and the like. A \r is known to be a break of
// its own only by what follows it.
size_t AfterLastBlankLine(std::string_view text) {
  for (size_t end = text.size(); end >= 2; --end) {
    size_t begin = end - 1;  // of the break that ends at `end`
    if (text[begin] == '\n') {
      if (text[begin - 1] == '\r') --begin;
    } else if (text[begin] != '\r' || end == text.size() || text[end] == '\n') {
      continue;
    }
    if (begin > 0 && (text[begin - 1] == '\n' || text[begin - 1] == '\r')) return end;
  }
  return kNone;
}

// Lines of whole lines; the last may lack its line break.
int64_t CountLines(std::string_view text) {
  auto count = static_cast<int64_t>(CountByte(text, '\n'));
  for (size_t at = text.find('\r'); at != kNone; at = text.find('\r', at + 1)) {
    if (at + 1 == text.size() || text[at + 1] != '\n') ++count;
  }
  if (!text.empty() && text.back() != '\n' && text.back() != '\r') ++count;
  return count;
}

const char* UnitName(InputFormat format) {
  if (format == InputFormat::kText) return "document";
  return format == InputFormat::kFile ? "file" : "line";
}

}  // namespace

bool LineSplitter::Next(Line& line) {
  if (at_ == text_.size()) return false;
  // Looked for once, not for every \r before it.
  if (!newline_ || *newline_ < at_) newline_ = std::min(text_.find('\n', at_), text_.size());
  const LineEnd end = FindLineEnd(text_, at_, *newline_);
  line = {number_++, text_.substr(at_, end.end - at_)};
  at_ = end.next;
  return true;
}

ChunkReader::ChunkReader(std::vector<std::string> inputs, const ChunkOptions& options,
                         const InputPosition& start)
    : inputs_(std::move(inputs)), options_(options), position_(start) {
  for (size_t i = 0; i < start.file; ++i) taken_before_ += FileSize(inputs_[i]);
  if (start.offset == 0) return;
  Open();
  if (inputs_[start.file] != "-") {
    source_->Skip(start.offset);
    return;
  }
  // A pipe has no name and no date: its text must be that of the first run.
  uint32_t checksum = 0;
  for (int64_t left = start.offset; left > 0; left -= static_cast<int64_t>(rest_.size())) {
    rest_.Truncate(0);
    Fill(std::min(options_.target, static_cast<size_t>(left)));
    if (rest_.size() == 0) break;
    checksum = static_cast<uint32_t>(
        ::crc32_z(checksum, reinterpret_cast<const Bytef*>(rest_.data()), rest_.size()));
  }
  rest_.Truncate(0);
  if (checksum != start.checksum) {
    throw DataError("--resume: stdin is not the text that the interrupted run read");
  }
}

void ChunkReader::Open() {
  source_ = OpenByteSource(inputs_[position_.file]);
  at_end_ = false;
}

void ChunkReader::Fill(size_t wanted) {
  while (!at_end_ && rest_.size() < wanted) {
    const size_t room = wanted - rest_.size();
    const size_t n = source_->Read(rest_.Reserve(room), room);
    rest_.Commit(n);
    at_end_ = n == 0;
  }
}

size_t ChunkReader::CutPoint(size_t from) const {
  const std::string_view rest = rest_.view();
  if (at_end_) return rest.size();
  if (options_.format == InputFormat::kFile) return kNone;
  const std::string_view searched = rest.substr(from);
  if (options_.format == InputFormat::kText) {
    const size_t cut = AfterLastBlankLine(searched);
    return cut == kNone ? kNone : from + cut;
  }
  const size_t newline = searched.rfind('\n');
  if (newline != kNone) return from + newline + 1;
  // A \r at the very end may be the first half of \r\n.
  const size_t carriage = searched.size() < 2 ? kNone : searched.rfind('\r', searched.size() - 2);
  return carriage == kNone ? kNone : from + carriage + 1;
}

bool ChunkReader::Next(Chunk& chunk) {
  while (true) {
    if (!source_) {
      if (position_.file == inputs_.size()) return false;
      Open();
    }
    Fill(options_.target);
    size_t cut = CutPoint(0);
    while (cut == kNone) {
      const size_t before = rest_.size();
      if (before > options_.max_document) {
        DropLine(chunk);
        return true;
      }
      Fill(before + options_.target);
      cut = CutPoint(before - std::min(before, kOverlap));
    }
    if (cut > 0) {
      Cut(cut, chunk);
      return true;
    }
    taken_before_ += source_->file_offset();
    source_.reset();
    position_ = {position_.file + 1, 0, 1, position_.index, position_.checksum};
  }
}

void ChunkReader::Cut(size_t size, Chunk& chunk) {
  TakePosition(chunk);
  ByteBuffer tail;
  tail.Append(rest_.view().substr(size));
  chunk.bytes = std::move(rest_);
  rest_ = std::move(tail);
  chunk.bytes.Truncate(size);
  const std::string_view text = chunk.bytes.view();
  const int64_t lines = CountLines(text);
  position_.offset += static_cast<int64_t>(size);
  position_.line += lines;
  position_.index += lines;
  if (inputs_[position_.file] == "-") {
    position_.checksum = static_cast<uint32_t>(
        ::crc32_z(position_.checksum, reinterpret_cast<const Bytef*>(text.data()), text.size()));
  }
  chunk.end = position_;
  chunk.taken = taken_before_ + source_->file_offset();
}

void ChunkReader::TakePosition(Chunk& chunk) {
  chunk.file = position_.file;
  chunk.first_line = position_.line;
  chunk.first_index = position_.index;
  chunk.problem.clear();
}

// rest_ is the start of a line that is too long.
void ChunkReader::DropLine(Chunk& chunk) {
  const std::string reason =
      fmt::format("a {} of more than {} MiB; --max-document-mib raises the limit (and the memory)",
                  UnitName(options_.format), options_.max_document >> 20);
  if (!options_.drop_long || options_.format == InputFormat::kText) {
    throw DataError(fmt::format("{}:{}: {}", inputs_[position_.file], position_.line, reason));
  }
  TakePosition(chunk);
  const bool is_stdin = inputs_[position_.file] == "-";
  while (true) {
    // What is left of the line, but for a last byte that may be the first half of \r\n.
    const std::string_view rest = rest_.view();
    const LineEnd line = options_.format == InputFormat::kFile
                             ? LineEnd{rest.size(), rest.size()}
                             : FindLineEnd(rest, 0, std::min(rest.find('\n'), rest.size()));
    const bool complete = line.next < rest.size() || at_end_ ||
                          (line.end < rest.size() && rest[line.end] == '\n') ||
                          line.next > line.end + 1;
    const size_t drop = complete || rest.empty() ? line.next : rest.size() - 1;
    if (is_stdin) {
      position_.checksum = static_cast<uint32_t>(
          ::crc32_z(position_.checksum, reinterpret_cast<const Bytef*>(rest.data()), drop));
    }
    position_.offset += static_cast<int64_t>(drop);
    ByteBuffer tail;
    tail.Append(rest.substr(drop));
    rest_ = std::move(tail);
    if (complete) break;
    Fill(rest_.size() + options_.target);
  }
  ++position_.line;
  ++position_.index;
  chunk.bytes = ByteBuffer();
  chunk.problem = reason;
  chunk.end = position_;
  chunk.taken = taken_before_ + source_->file_offset();
}

}  // namespace muster::tools
