// gzip (zlib) and zstd (libzstd) as streams of bytes.
#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/data_error.h"
#include "trainer/tools/byte_source.h"

namespace muster::tools {
namespace {

using data::DataError;

constexpr size_t kInputBytes = 1 << 17;
// The window that `zstd --long` needs by default; a larger one would break the bound on memory.
constexpr int kMaxWindowLog = 27;

// Packed input in blocks, with the offset of what was consumed.
class PackedSource : public ByteSource {
 public:
  explicit PackedSource(std::unique_ptr<FileSource> file)
      : file_(std::move(file)), block_(kInputBytes) {}

  int64_t file_offset() const override {
    return file_->file_offset() - static_cast<int64_t>(size_ - used_);
  }
  const std::string& path() const override { return file_->path(); }

 protected:
  // Makes sure that there is a next byte; false at the end of the file.
  bool Fill() {
    if (used_ < size_) return true;
    used_ = 0;
    size_ = file_->Read(block_.data(), block_.size());
    return size_ > 0;
  }
  [[noreturn]] void Fail(const std::string& reason) const {
    throw DataError(fmt::format("{}, offset {}: {}", path(), file_offset(), reason));
  }

  std::unique_ptr<FileSource> file_;
  std::vector<char> block_;
  size_t size_ = 0;
  size_t used_ = 0;
};

class GzipSource : public PackedSource {
 public:
  explicit GzipSource(std::unique_ptr<FileSource> file) : PackedSource(std::move(file)) {
    if (::inflateInit2(&stream_, kGzipWindow) != Z_OK) throw DataError("zlib can't start");
  }
  ~GzipSource() override { ::inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  size_t Read(char* out, size_t size) override {
    while (size > 0) {
      if (!Fill()) {
        if (in_member_) Fail("the gzip file is truncated: it ends inside a member");
        return 0;
      }
      if (!in_member_ && !StartMember()) return 0;
      const size_t n = Inflate(out, size);
      if (n > 0) return n;
    }
    return 0;
  }

 private:
  static constexpr int kGzipWindow = 15 + 16;  // largest window; a gzip header

  // False at the end: zeros may pad a file, as gzip and Python's module allow.
  bool StartMember() {
    while (Fill() && first_member_done_ && block_[used_] == 0) ++used_;
    if (!Fill()) return false;
    ::inflateReset(&stream_);
    in_member_ = true;
    return true;
  }

  size_t Inflate(char* out, size_t size) {
    constexpr size_t kMost = 1U << 30;  // zlib counts in unsigned int
    stream_.next_in = reinterpret_cast<Bytef*>(block_.data() + used_);
    stream_.avail_in = static_cast<uInt>(size_ - used_);
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    const auto room = static_cast<uInt>(std::min(size, kMost));
    stream_.avail_out = room;
    const int status = ::inflate(&stream_, Z_NO_FLUSH);
    used_ = size_ - stream_.avail_in;
    if (status == Z_STREAM_END) {
      in_member_ = false;
      first_member_done_ = true;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      const char* reason = stream_.msg != nullptr ? stream_.msg : "damaged";
      Fail(fmt::format("the gzip file is damaged: {}", reason));
    }
    return room - stream_.avail_out;
  }

  z_stream stream_{};
  bool in_member_ = false;
  bool first_member_done_ = false;
};

class ZstdSource : public PackedSource {
 public:
  explicit ZstdSource(std::unique_ptr<FileSource> file)
      : PackedSource(std::move(file)), context_(::ZSTD_createDCtx(), &::ZSTD_freeDCtx) {
    ::ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  }

  size_t Read(char* out, size_t size) override {
    while (size > 0) {
      // A full output may hide more that the decoder holds: ask it before the end is believed.
      const bool more = Fill();
      if (!more && !in_frame_) return 0;
      ZSTD_inBuffer in{block_.data(), size_, used_};
      ZSTD_outBuffer to{out, size, 0};
      const size_t left = ::ZSTD_decompressStream(context_.get(), &to, &in);
      used_ = in.pos;
      if (::ZSTD_isError(left) != 0) FailWith(left);
      in_frame_ = left != 0;
      if (to.pos > 0) return to.pos;
      if (!more) Fail("the zstd file is truncated: it ends inside a frame");
    }
    return 0;
  }

 private:
  [[noreturn]] void FailWith(size_t code) const {
    const std::string name = ::ZSTD_getErrorName(code);
    if (name.find("too much memory") != std::string::npos) {
      Fail(
          fmt::format("the zstd file needs a window of more than {} MiB (zstd --long={} or more); "
                      "pipe it: zstd -dc --long=31 {} | muster-preprocess --input - ...",
                      (1 << kMaxWindowLog) >> 20, kMaxWindowLog + 1, path()));
    }
    Fail("the zstd file is damaged: " + name);
  }

  std::unique_ptr<ZSTD_DCtx, decltype(&::ZSTD_freeDCtx)> context_;
  bool in_frame_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> NewGzipSource(std::unique_ptr<FileSource> file) {
  return std::make_unique<GzipSource>(std::move(file));
}

std::unique_ptr<ByteSource> NewZstdSource(std::unique_ptr<FileSource> file) {
  return std::make_unique<ZstdSource>(std::move(file));
}

}  // namespace muster::tools
