#include "worker/facts/kernel_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <functional>

#include "common/unique_fd.h"

namespace muster::facts {
namespace {

constexpr char kDevice[] = "/dev/kmsg";
constexpr char kNvidiaDriver[] = "/proc/driver/nvidia";
constexpr int kMost = 100;
constexpr size_t kMaxLine = 8192;  // of the kernel itself

int64_t Now(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

// Calls `take` with each line of a file until its end; lines of a record beyond the first begin
// with a blank. "" or why it could not be read.
std::string ReadRecords(const std::string& path,
                        const std::function<void(std::string_view)>& take) {
  const UniqueFd log(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!log) return path + ": " + std::strerror(errno);
  std::string text;
  char buffer[kMaxLine];
  while (true) {
    const ssize_t n = read(log.get(), buffer, sizeof buffer);
    if (n < 0 && (errno == EINTR || errno == EPIPE)) continue;  // EPIPE: records were overwritten
    if (n < 0 && errno != EAGAIN) return path + ": " + std::strerror(errno);
    if (n <= 0) return "";
    text.append(buffer, static_cast<size_t>(n));
    size_t at = 0;
    for (size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      if (text[at] != ' ') take(std::string_view(text).substr(at, end - at));
    }
    text.erase(0, at);
    if (text.size() > 4 * kMaxLine) text.clear();
  }
}

void Keep(std::optional<v1::KernelFault> fault, int64_t since_ns, v1::KernelLook& look) {
  if (!fault || fault->realtime_ns() < since_ns) return;
  if (look.faults_size() == kMost) look.mutable_faults()->DeleteSubrange(0, 1);
  *look.add_faults() = *std::move(fault);
}

v1::KernelLook ReadKmsg(int64_t since_ns, const std::string& path) {
  v1::KernelLook look;
  const int64_t boot_ns = Now(CLOCK_REALTIME) - Now(CLOCK_MONOTONIC);
  look.set_error(ReadRecords(path, [&](std::string_view record) {
    Keep(ParseKernelRecord(record, boot_ns), since_ns, look);
  }));
  return look;
}

v1::KernelLook AskJournal(int64_t since_ns, const Environment& environment,
                          std::chrono::steady_clock::time_point deadline) {
  v1::KernelLook look;
  const std::string since = "@" + std::to_string(since_ns / 1'000'000'000);
  const ToolOutput output =
      RunTool({"journalctl", "-k", "-q", "--no-pager", "-o", "short-unix", "--since", since},
              environment, deadline);
  if (!output.found) {
    look.set_error("there is no journalctl");
  } else if (!output.failure.empty() || output.exit_code != 0) {
    look.set_error("journalctl: " + (output.failure.empty() ? output.err : output.failure));
  } else if (output.out.empty() && output.err.find("not seeing messages") != std::string::npos) {
    look.set_error("journalctl: " + output.err);
  }
  std::string_view rest = output.out;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    Keep(ParseJournalLine(rest.substr(0, end)), since_ns, look);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return look;
}

}  // namespace

v1::KernelLook LookAtKernel(int64_t since_ns, const std::string& path,
                            const Environment& environment,
                            std::chrono::steady_clock::time_point deadline) {
  v1::KernelLook look = ReadKmsg(since_ns, path.empty() ? kDevice : path);
  if (look.error().empty() || !path.empty()) return look;
  v1::KernelLook journal = AskJournal(since_ns, environment, deadline);
  if (!journal.error().empty()) journal.set_error(look.error() + "; " + journal.error());
  return journal;
}

std::vector<v1::KernelFault> KernelFaults(int64_t since_ns) {
  std::vector<v1::KernelFault> faults;
  // Thousands of records are read one by one, and only this driver's are wanted.
  if (access(kNvidiaDriver, F_OK) != 0) return faults;
  const v1::KernelLook look = ReadKmsg(since_ns, kDevice);
  for (const v1::KernelFault& fault : look.faults()) {
    if (fault.xid() != 0) faults.push_back(fault);
  }
  return faults;
}

}  // namespace muster::facts
