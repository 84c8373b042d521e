#include "trainer/tools/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "trainer/data/data_error.h"

namespace muster::tools {
namespace {

using data::DataError;
using namespace std::string_view_literals;  // magic bytes hold zeros

constexpr size_t kSkipBytes = 1 << 16;

struct Magic {
  std::string_view bytes;
  std::string_view name;
  std::string_view unpack;  // a command
};

constexpr std::string_view kGzip = "\x1f\x8b"sv;
constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd"sv;

constexpr Magic kRefused[] = {
    {"BZh"sv, "bzip2", "bzip2 -dc"},
    {"\xfd"
     "7zXZ\0"sv,
     "xz", "xz -dc"},
    {"\x04\x22\x4d\x18"sv, "lz4", "lz4 -dc"},
    {"PK\x03\x04"sv, "zip", "unzip -p"},
};

// A zstd file may start with a skippable frame: 50 to 5f, 2a 4d 18.
bool IsSkippableFrame(std::string_view head) {
  return head.size() >= 4 && (static_cast<uint8_t>(head[0]) & 0xf0) == 0x50 &&
         head.substr(1, 3) == "\x2a\x4d\x18"sv;
}

}  // namespace

void ByteSource::Skip(int64_t count) {
  std::vector<char> dropped(kSkipBytes);
  while (count > 0) {
    const size_t n = Read(dropped.data(), std::min(dropped.size(), static_cast<size_t>(count)));
    if (n == 0) {
      throw DataError(
          fmt::format("{}: the text ends {} bytes before the place to go on from", path(), count));
    }
    count -= static_cast<int64_t>(n);
  }
}

FileSource::FileSource(const std::string& path) : path_(path) {
  fd_.reset(path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                        : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd_) throw DataError("open " + path + ": " + std::strerror(errno));
  ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);  // a hint: may fail
}

std::string_view FileSource::Peek(size_t size) {
  while (peeked_.size() < size) {
    const size_t n = Read(peeked_.Reserve(size - peeked_.size()), size - peeked_.size());
    if (n == 0) break;
    peeked_.Commit(n);
    peeked_used_ = peeked_.size();  // so that the next Read reads on
  }
  peeked_used_ = 0;
  offset_ = 0;
  return peeked_.view();
}

size_t FileSource::Read(char* out, size_t size) {
  if (peeked_used_ < peeked_.size()) {
    const size_t n = std::min(size, peeked_.size() - peeked_used_);
    std::memcpy(out, peeked_.data() + peeked_used_, n);
    peeked_used_ += n;
    offset_ += static_cast<int64_t>(n);
    return n;
  }
  while (true) {
    const ssize_t n = ::read(fd_.get(), out, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      throw DataError(fmt::format("read {}, offset {}: {}", path_, offset_, std::strerror(errno)));
    }
    offset_ += n;
    return static_cast<size_t>(n);
  }
}

void FileSource::Skip(int64_t count) {
  struct stat info {};
  const bool regular = ::fstat(fd_.get(), &info) == 0 && S_ISREG(info.st_mode);
  if (!regular || path_ == "-" || info.st_size < offset_ + count) return ByteSource::Skip(count);
  if (::lseek(fd_.get(), offset_ + count, SEEK_SET) < 0) {
    throw DataError(
        fmt::format("seek in {} to {}: {}", path_, offset_ + count, std::strerror(errno)));
  }
  peeked_used_ = peeked_.size();
  offset_ += count;
}

std::unique_ptr<ByteSource> OpenByteSource(const std::string& path) {
  auto file = std::make_unique<FileSource>(path);
  const std::string_view head = file->Peek(6);
  for (const Magic& magic : kRefused) {
    if (!head.starts_with(magic.bytes)) continue;
    throw DataError(
        fmt::format("{} is packed with {}, which is not read here; pipe it: {} {} | "
                    "muster-preprocess --input - ...",
                    path, magic.name, magic.unpack, path));
  }
  if (head.starts_with(kGzip)) return NewGzipSource(std::move(file));
  if (head.starts_with(kZstd) || IsSkippableFrame(head)) return NewZstdSource(std::move(file));
  return file;
}

int64_t FileSize(const std::string& path) {
  struct stat info {};
  const int failed = path == "-" ? ::fstat(STDIN_FILENO, &info) : ::stat(path.c_str(), &info);
  return failed == 0 && S_ISREG(info.st_mode) ? info.st_size : 0;
}

}  // namespace muster::tools
