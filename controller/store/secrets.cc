#include "controller/store/secrets.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "common/status.h"
#include "common/unique_fd.h"

namespace muster::store {
namespace {

absl::Status WriteAll(int fd, const std::string& bytes, const std::string& path) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return PosixError("write " + path);
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace

std::string Secrets::PathOf(uint64_t job) const {
  return absl::StrCat(folder_, "/", job);
}

absl::Status Secrets::Put(uint64_t job, const v1::JobSpec& spec) {
  if (spec.secrets().empty()) return absl::OkStatus();
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return PosixError("mkdir " + folder_);
  v1::JobSpec only_secrets;
  *only_secrets.mutable_secrets() = spec.secrets();
  const std::string path = PathOf(job);
  const std::string fresh = path + ".new";
  UniqueFd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return PosixError("open " + fresh);
  MUSTER_RETURN_IF_ERROR(WriteAll(fd.get(), only_secrets.SerializeAsString(), fresh));
  if (::fdatasync(fd.get()) != 0) return PosixError("fdatasync " + fresh);
  if (::rename(fresh.c_str(), path.c_str()) != 0) return PosixError("rename " + fresh);
  return absl::OkStatus();
}

absl::Status Secrets::Restore(uint64_t job, v1::JobSpec& spec) const {
  if (spec.secrets().empty()) return absl::OkStatus();
  std::ifstream file(PathOf(job), std::ios::binary);
  std::stringstream bytes;
  if (file) bytes << file.rdbuf();
  v1::JobSpec only_secrets;
  if (!file || !only_secrets.ParseFromString(bytes.str())) {
    return absl::NotFoundError(
        absl::StrCat("the secrets of job ", job, " are not in ", PathOf(job)));
  }
  *spec.mutable_secrets() = only_secrets.secrets();
  return absl::OkStatus();
}

void Secrets::Remove(uint64_t job) {
  (void)::unlink(PathOf(job).c_str());
  (void)::unlink((PathOf(job) + ".new").c_str());
}

v1::JobSpec Mask(v1::JobSpec spec) {
  for (auto& secret : *spec.mutable_secrets()) secret.set_value(kMask);
  return spec;
}

}  // namespace muster::store
