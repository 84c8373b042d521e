#include "trainer/tools/spill_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "trainer/data/data_error.h"

namespace muster::tools {
namespace {

[[noreturn]] void Fail(const std::string& what, const std::string& path) {
  throw data::DataError(what + " " + path + ": " + std::strerror(errno));
}

}  // namespace

SpillFile::SpillFile(const std::string& folder) : name_(folder + "/.muster-spill.XXXXXX") {
  fd_.reset(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd_) return;
  // A file system that can't make files without names.
  fd_.reset(::mkostemp(name_.data(), O_CLOEXEC));
  if (!fd_) Fail("create", name_);
  ::unlink(name_.c_str());
}

void SpillFile::Write(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), size_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) Fail("write", name_);
    bytes = bytes.subspan(static_cast<size_t>(n));
    size_ += n;
  }
}

void SpillFile::Truncate(int64_t size) {
  if (::ftruncate(fd_.get(), size) != 0) Fail("truncate", name_);
  size_ = size;
}

}  // namespace muster::tools
