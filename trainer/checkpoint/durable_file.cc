#include "trainer/checkpoint/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

#include "trainer/checkpoint/crc32c.h"
#include "trainer/config/error.h"

namespace muster::checkpoint {
namespace {

[[noreturn]] void Fail(const char* action, const std::filesystem::path& path, int error) {
  throw CheckpointError(std::string(action) + " " + path.string() + ": " +
                        std::generic_category().message(error));
}

}  // namespace

DurableFile::DurableFile(std::filesystem::path path)
    : path_(std::move(path)),
      fd_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (!fd_) Fail("create", path_, errno);
}

void DurableFile::Write(const void* data, size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  crc_ = Crc32c(crc_, data, size);
  bytes_ += size;
  while (size > 0) {
    const ssize_t n = write(fd_.get(), bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) Fail("write", path_, errno);
    bytes += n;
    size -= static_cast<size_t>(n);
  }
}

void DurableFile::Finish() {
  if (fsync(fd_.get()) != 0) Fail("flush", path_, errno);
  if (close(fd_.release()) != 0) Fail("close", path_, errno);
}

void SyncFolder(const std::filesystem::path& folder) {
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) Fail("open", folder, errno);
  if (fsync(fd.get()) != 0) Fail("flush", folder, errno);
}

void DurableRename(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (rename(from.c_str(), to.c_str()) != 0) Fail("rename to", to, errno);
  SyncFolder(to.has_parent_path() ? to.parent_path() : ".");
}

void ReplaceFile(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  DurableFile file(temporary);
  file.Write(text.data(), text.size());
  file.Finish();
  DurableRename(temporary, path);
}

void MakeFolder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw CheckpointError("create folder " + folder.string() + ": " + error.message());
}

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in) Fail("read", path, errno);
  return text.str();
}

}  // namespace muster::checkpoint
