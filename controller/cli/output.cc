#include "controller/cli/output.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "controller/cli/exit_code.h"
#include "controller/cli/job_json.h"

namespace muster::cli {
namespace {

std::atomic<int> stdout_errno{0};

}  // namespace

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd wait{fd, POLLOUT, 0};
      poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      if (fd == STDOUT_FILENO && errno != EPIPE) stdout_errno = errno;
      return false;
    }
  }
  return true;
}

void PrintError(std::string_view text) {
  std::string out = "muster: ";
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  for (const char c : text) {
    out.push_back(c);
    if (c == '\n') out.append("  ");
  }
  out.push_back('\n');
  WriteAll(STDERR_FILENO, out);
}

int Fail(const absl::Status& status, bool json) {
  const int code = ExitCodeFor(status);
  PrintError(ErrorText(status));
  if (json) PrintLine(ErrorJson(code, ErrorText(status)));
  return code;
}

void PrintLine(std::string_view text) {
  WriteAll(STDOUT_FILENO, std::string(text) + "\n");
}

int CheckStdout(int code) {
  const int error = stdout_errno;
  if (error == 0) return code;
  PrintError(std::string("stdout can't be written: ") + std::strerror(error));
  return code == kExitOk ? kExitInternal : code;
}

}  // namespace muster::cli
