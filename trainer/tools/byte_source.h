#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/unique_fd.h"
#include "trainer/tools/byte_buffer.h"

namespace muster::tools {

// A stream of bytes on one thread: a file, stdin, or what is packed in one. Throws data::DataError
// with path, offset in the file and reason.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Up to `size` bytes; 0 only at the end.
  virtual size_t Read(char* out, size_t size) = 0;

  // Drops the next `count` bytes. An error when there are fewer.
  virtual void Skip(int64_t count);

  // Bytes of the file itself (packed ones, if it is packed) taken so far: for a progress bar.
  virtual int64_t file_offset() const = 0;

  virtual const std::string& path() const = 0;
};

// A file or, for "-", stdin, as it is.
class FileSource : public ByteSource {
 public:
  explicit FileSource(const std::string& path);

  size_t Read(char* out, size_t size) override;
  void Skip(int64_t count) override;
  int64_t file_offset() const override { return offset_; }
  const std::string& path() const override { return path_; }

  // The first bytes, at most `size`, which Read will give too. Before any Read.
  std::string_view Peek(size_t size);

 private:
  std::string path_;
  UniqueFd fd_;
  int64_t offset_ = 0;
  ByteBuffer peeked_;
  size_t peeked_used_ = 0;
};

// What is packed in `file`: members (gzip) or frames (zstd), one after the other.
std::unique_ptr<ByteSource> NewGzipSource(std::unique_ptr<FileSource> file);
std::unique_ptr<ByteSource> NewZstdSource(std::unique_ptr<FileSource> file);

// The text in a file, unpacked when its first bytes say gzip or zstd. Other packed forms are
// refused by name.
std::unique_ptr<ByteSource> OpenByteSource(const std::string& path);

// Size of a plain or packed file, for a progress bar; 0 when it has none (a pipe).
int64_t FileSize(const std::string& path);

}  // namespace muster::tools
