#include "trainer/data/bin_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/unique_fd.h"
#include "trainer/data/data_error.h"
#include "trainer/data/mapped_file.h"
#include "trainer/data/token_loops.h"

namespace muster::data {
namespace {

class MappedBin : public BinReader {
 public:
  explicit MappedBin(const std::string& path) : file_(path) {}

  int64_t size() const override { return file_.size(); }

  const uint8_t* Fetch(int64_t offset, int64_t /*count*/,
                       std::vector<uint8_t>& /*buffer*/) const override {
    return file_.data() + offset;
  }

  void Touch(int64_t offset, int64_t count) const override {
    TouchTokens(file_.data() + offset, count);
  }

  void Prefetch(int64_t offset, int64_t count) const override { file_.Prefetch(offset, count); }

 private:
  MappedFile file_;
};

class PreadBin : public BinReader {
 public:
  explicit PreadBin(const std::string& path) : path_(path) {
    fd_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd_) throw DataError("open " + path + ": " + std::strerror(errno));
    struct stat info {};
    if (::fstat(fd_.get(), &info) != 0) {
      throw DataError("stat " + path + ": " + std::strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) throw DataError(path + " is not a regular file");
    size_ = info.st_size;
  }

  int64_t size() const override { return size_; }

  const uint8_t* Fetch(int64_t offset, int64_t count, std::vector<uint8_t>& buffer) const override {
    buffer.resize(static_cast<size_t>(count));
    for (int64_t done = 0; done < count;) {
      const ssize_t n = ::pread(fd_.get(), buffer.data() + done, static_cast<size_t>(count - done),
                                offset + done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        throw DataError(fmt::format("read {}, offset {}: {}", path_, offset + done,
                                    n < 0 ? std::strerror(errno) : "the file became shorter"));
      }
      done += n;
    }
    return buffer.data();
  }

  void Touch(int64_t /*offset*/, int64_t /*count*/) const override {}

  void Prefetch(int64_t offset, int64_t count) const override {
    ::posix_fadvise(fd_.get(), offset, count, POSIX_FADV_WILLNEED);
  }

 private:
  std::string path_;
  UniqueFd fd_;
  int64_t size_ = 0;
};

}  // namespace

std::unique_ptr<BinReader> MapBin(const std::string& path) {
  return std::make_unique<MappedBin>(path);
}

std::unique_ptr<BinReader> OpenBin(const std::string& path) {
  return std::make_unique<PreadBin>(path);
}

}  // namespace muster::data
