#include "controller/logs/end_journal.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <unistd.h>

#include <string_view>

#include "common/status.h"
#include "controller/logs/file_io.h"
#include "controller/logs/layout.h"

namespace muster::logs {
namespace {

void ParseLine(const std::string& line, EndJournal::Content& content) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  if (words.size() == 2 && words[0] == "abandoned") {
    uint32_t node = 0;
    if (absl::SimpleAtoi(words[1], &node)) content.abandoned.push_back(node);
    return;
  }
  if (words.size() != 4 || words[0] != "end") return;
  EndJournal::End end;
  if (!absl::SimpleAtoi(words[1], &end.rank) || !absl::SimpleAtoi(words[3], &end.bytes)) return;
  for (const v1::Stream stream : kStreams) {
    if (words[2] == StreamName(stream)) end.stream = stream;
  }
  if (end.stream != v1::STREAM_UNSPECIFIED) content.ends.push_back(end);
}

// `good`: the bytes of whole lines.
absl::StatusOr<EndJournal::Content> ReadAll(int fd, const std::string& path, uint64_t& good) {
  MUSTER_ASSIGN_OR_RETURN(const uint64_t size, FileSize(fd, path));
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadAt(fd, 0, static_cast<size_t>(size), path));
  EndJournal::Content content;
  std::string_view rest = text;
  for (size_t end; (end = rest.find('\n')) != std::string_view::npos;) {
    ParseLine(std::string(rest.substr(0, end)), content);
    rest.remove_prefix(end + 1);
  }
  good = text.size() - rest.size();
  return content;
}

}  // namespace

absl::StatusOr<EndJournal::Content> EndJournal::Look(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(path, O_RDONLY));
  uint64_t good = 0;
  return ReadAll(fd.get(), path, good);
}

absl::StatusOr<EndJournal::Content> EndJournal::Recover() {
  MUSTER_ASSIGN_OR_RETURN(fd_, OpenFile(path_, O_RDWR | O_CREAT));
  MUSTER_ASSIGN_OR_RETURN(Content content, ReadAll(fd_.get(), path_, size_));
  if (ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) return PosixError("truncate " + path_);
  return content;
}

absl::Status EndJournal::Append(const std::vector<End>& ends) {
  std::string lines;
  for (const End& end : ends) {
    lines += "end " + std::to_string(end.rank) + " " + StreamName(end.stream) + " " +
             std::to_string(end.bytes) + "\n";
  }
  return Write(lines);
}

absl::Status EndJournal::AppendAbandoned(uint32_t node) {
  return Write("abandoned " + std::to_string(node) + "\n");
}

absl::Status EndJournal::Write(const std::string& lines) {
  size_t written = 0;
  MUSTER_RETURN_IF_ERROR(WriteAt(fd_.get(), size_, lines, path_, written));
  if (fdatasync(fd_.get()) != 0) return PosixError("sync " + path_);
  size_ += lines.size();
  return absl::OkStatus();
}

}  // namespace muster::logs
