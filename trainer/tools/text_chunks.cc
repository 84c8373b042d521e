#include "trainer/tools/text_chunks.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trainer/data/data_error.h"

namespace muster::tools {
namespace {

using data::DataError;

constexpr size_t kNone = std::string::npos;

// End of the line that starts at `at`, and where the next one starts.
struct LineEnd {
  size_t end;
  size_t next;
};

LineEnd FindLineEnd(std::string_view text, size_t at) {
  const char* first = text.data() + at;
  const size_t left = text.size() - at;
  const void* newline = std::memchr(first, '\n', left);
  const size_t to_newline =
      newline != nullptr ? static_cast<size_t>(static_cast<const char*>(newline) - first) : left;
  const void* carriage = std::memchr(first, '\r', to_newline);
  if (carriage == nullptr) return {at + to_newline, std::min(at + to_newline + 1, text.size())};
  const size_t end = at + static_cast<size_t>(static_cast<const char*>(carriage) - first);
  const bool pair = end + 1 < text.size() && text[end + 1] == '\n';
  return {end, end + (pair ? 2 : 1)};
}

int64_t CountLineBreaks(std::string_view text) {
  int64_t count = std::count(text.begin(), text.end(), '\n');
  for (size_t at = text.find('\r'); at != kNone; at = text.find('\r', at + 1)) {
    if (at + 1 == text.size() || text[at + 1] != '\n') ++count;
  }
  return count;
}

}  // namespace

std::vector<Line> SplitLines(const Chunk& chunk) {
  std::vector<Line> lines;
  int64_t number = chunk.first_line;
  for (size_t at = 0; at < chunk.bytes.size(); ++number) {
    const LineEnd line = FindLineEnd(chunk.bytes, at);
    lines.push_back({number, std::string_view(chunk.bytes).substr(at, line.end - at)});
    at = line.next;
  }
  return lines;
}

ChunkReader::ChunkReader(const std::string& path, InputFormat format, size_t target)
    : path_(path), format_(format), target_(target) {
  fd_.reset(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd_) throw DataError("open " + path + ": " + std::strerror(errno));
}

void ChunkReader::Fill(size_t wanted) {
  while (!at_end_ && rest_.size() < wanted) {
    const size_t before = rest_.size();
    rest_.resize(wanted);
    const ssize_t n = ::read(fd_.get(), rest_.data() + before, wanted - before);
    const int error = errno;
    rest_.resize(before + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && error != EINTR) throw DataError("read " + path_ + ": " + std::strerror(error));
    at_end_ = n == 0;
  }
}

size_t ChunkReader::CutPoint() const {
  if (at_end_) return rest_.size();
  if (format_ == InputFormat::kText) {
    const size_t unix_blank = rest_.rfind("\n\n");
    const size_t dos_blank = rest_.rfind("\n\r\n");
    const size_t after_unix = unix_blank == kNone ? 0 : unix_blank + 2;
    const size_t after_dos = dos_blank == kNone ? 0 : dos_blank + 3;
    const size_t cut = std::max(after_unix, after_dos);
    return cut == 0 ? kNone : cut;
  }
  const size_t newline = rest_.rfind('\n');
  if (newline != kNone) return newline + 1;
  // A \r at the very end may be the first half of \r\n.
  const size_t carriage = rest_.size() < 2 ? kNone : rest_.rfind('\r', rest_.size() - 2);
  return carriage == kNone ? kNone : carriage + 1;
}

bool ChunkReader::Next(Chunk& chunk) {
  size_t wanted = target_;
  Fill(wanted);
  size_t cut = CutPoint();
  while (cut == kNone) {
    wanted *= 2;
    Fill(wanted);
    cut = CutPoint();
  }
  if (cut == 0) return false;
  chunk.first_line = next_line_;
  chunk.bytes.assign(rest_, 0, cut);
  rest_.erase(0, cut);
  next_line_ += CountLineBreaks(chunk.bytes);
  return true;
}

}  // namespace muster::tools
