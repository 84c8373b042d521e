#include "controller/bundle/run_program.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/read_at.h"
#include "common/spawn.h"
#include "common/status.h"
#include "common/unique_fd.h"

namespace muster::bundle {
namespace {

absl::StatusOr<std::string> Content(const UniqueFd& fd) {
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return PosixError("fstat");
  return ReadAt(fd.get(), 0, static_cast<uint64_t>(info.st_size), "its output");
}

}  // namespace

absl::StatusOr<std::string> RunProgram(const std::vector<std::string>& words,
                                       const std::optional<std::vector<std::string>>& environment) {
  const UniqueFd out(memfd_create("stdout", MFD_CLOEXEC));
  const UniqueFd err(memfd_create("stderr", MFD_CLOEXEC));
  if (!out || !err) return PosixError("memfd_create");
  const auto pid =
      Spawn({.words = words, .environment = environment, .out = out.get(), .err = err.get()});
  if (absl::IsNotFound(pid.status())) {
    return absl::FailedPreconditionError(words[0] + " is not installed here: apt-get install " +
                                         (words[0] == "ldd" ? "libc-bin" : words[0]));
  }
  if (!pid.ok()) return pid.status();
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string errors, Content(err));
  if (status != 0) {
    return absl::InternalError(words[0] + " " + (words.size() > 1 ? words.back() + " " : "") +
                               DescribeWaitStatus(status) + ": " + errors);
  }
  return Content(out);
}

}  // namespace muster::bundle
