#include "trainer/tools/spill_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "trainer/data/data_error.h"
#include "trainer/data/file_ops.h"

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
  data::WriteAll(fd_.get(), bytes.data(), bytes.size(), name_);
  size_ += static_cast<int64_t>(bytes.size());
}

void SpillFile::Truncate(int64_t size) {
  if (::ftruncate(fd_.get(), size) != 0) Fail("truncate", name_);
  if (::lseek(fd_.get(), size, SEEK_SET) < 0) Fail("seek in", name_);
  size_ = size;
}

}  // namespace muster::tools
