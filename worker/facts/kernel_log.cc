#include "worker/facts/kernel_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <ctime>

#include "common/unique_fd.h"

namespace muster::facts {
namespace {

constexpr std::string_view kXid = "NVRM: Xid (PCI:";
constexpr size_t kMost = 100;

template <typename Number>
bool ReadNumber(std::string_view text, Number& out) {
  return std::from_chars(text.data(), text.data() + text.size(), out).ec == std::errc();
}

int64_t Now(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace

std::optional<v1::KernelFault> ParseKernelFault(std::string_view record, int64_t boot_ns) {
  const size_t text_at = record.find(';');
  if (text_at == std::string_view::npos) return std::nullopt;
  std::string_view text = record.substr(text_at + 1);
  text = text.substr(0, text.find('\n'));
  const size_t xid = text.find(kXid);
  if (xid == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(xid + kXid.size());
  const size_t close = rest.find("): ");
  v1::KernelFault fault;
  uint32_t number = 0;
  if (close == std::string_view::npos || !ReadNumber(rest.substr(close + 3), number)) {
    return std::nullopt;
  }
  // "priority,sequence,microseconds,flags"
  const size_t first = record.find(',');
  const size_t second = record.find(',', first + 1);
  int64_t microseconds = 0;
  if (second == std::string_view::npos || second > text_at ||
      !ReadNumber(record.substr(second + 1), microseconds)) {
    return std::nullopt;
  }
  fault.set_realtime_ns(boot_ns + microseconds * 1000);
  fault.set_bus_id(std::string(rest.substr(0, close)));
  fault.set_xid(number);
  fault.set_text(std::string(text));
  return fault;
}

std::vector<v1::KernelFault> KernelFaults(int64_t since_ns) {
  std::vector<v1::KernelFault> faults;
  const UniqueFd log(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!log) return faults;
  const int64_t boot_ns = Now(CLOCK_REALTIME) - Now(CLOCK_MONOTONIC);
  char record[8192];
  while (true) {
    const ssize_t n = read(log.get(), record, sizeof record);
    if (n < 0 && (errno == EINTR || errno == EPIPE)) continue;  // EPIPE: records were overwritten
    if (n <= 0) return faults;
    auto fault = ParseKernelFault({record, static_cast<size_t>(n)}, boot_ns);
    if (!fault || fault->realtime_ns() < since_ns) continue;
    if (faults.size() == kMost) faults.erase(faults.begin());
    faults.push_back(*std::move(fault));
  }
}

}  // namespace muster::facts
