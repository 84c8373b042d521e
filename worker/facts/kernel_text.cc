// Which lines of the kernel's log matter, and what they say.
#include <charconv>

#include "worker/facts/kernel_log.h"

namespace muster::facts {
namespace {

constexpr std::string_view kXid = "NVRM: Xid (PCI:";

template <typename Number>
bool ReadNumber(std::string_view text, Number& out) {
  return std::from_chars(text.data(), text.data() + text.size(), out).ec == std::errc();
}

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The number after `mark`, or 0.
uint32_t NumberAfter(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  uint32_t number = 0;
  if (at != std::string_view::npos) ReadNumber(text.substr(at + mark.size()), number);
  return number;
}

// "NVRM: Xid (PCI:0000:3b:00): 79, pid=812, ..."
bool TakeXid(std::string_view text, v1::KernelFault& fault) {
  const size_t at = text.find(kXid);
  if (at == std::string_view::npos) return false;
  const std::string_view rest = text.substr(at + kXid.size());
  const size_t close = rest.find("): ");
  uint32_t number = 0;
  if (close == std::string_view::npos || !ReadNumber(rest.substr(close + 3), number)) return false;
  fault.set_kind("xid");
  fault.set_bus_id(std::string(rest.substr(0, close)));
  fault.set_xid(number);
  fault.set_pid(NumberAfter(rest, "pid="));
  return true;
}

bool TakeOom(std::string_view text, v1::KernelFault& fault) {
  // "Out of memory: Killed process 4711 (python3) ...", "Memory cgroup out of memory: ...", and
  // before them "oom-kill:constraint=...,task=python3,pid=4711,uid=0".
  const bool killed = Has(text, "ut of memory: Kill");
  if (!killed && !Has(text, "oom-kill:")) return false;
  fault.set_kind("oom");
  fault.set_pid(NumberAfter(text, killed ? "process " : ",pid="));
  return true;
}

// "python3[812]: segfault at 8 ip ...", "traps: train[812] general protection fault ip:..."
bool TakeSegfault(std::string_view text, v1::KernelFault& fault) {
  if (!Has(text, ": segfault at ") && !text.starts_with("traps: ")) return false;
  const size_t open = text.find('[');
  uint32_t pid = 0;
  if (open == std::string_view::npos || !ReadNumber(text.substr(open + 1), pid)) return false;
  fault.set_kind("segfault");
  fault.set_pid(pid);
  return true;
}

std::string_view KindOf(std::string_view text) {
  if (Has(text, "EDAC ") && (Has(text, " UE ") || Has(text, "ncorrect"))) return "ecc";
  if (Has(text, "[Hardware Error]") || text.starts_with("mce: ")) return "machine check";
  if (Has(text, "ink is Down") || Has(text, "ink down") || Has(text, "link is down") ||
      Has(text, "link status definitely down")) {
    return "link";
  }
  if (Has(text, "I/O error, dev ") || Has(text, "EXT4-fs error") ||
      (Has(text, "XFS (") && (Has(text, "orruption") || Has(text, "hutting down"))) ||
      Has(text, "not responding, still trying")) {
    return "disk";
  }
  return "";
}

}  // namespace

std::optional<v1::KernelFault> ParseKernelText(std::string_view text) {
  v1::KernelFault fault;
  if (!TakeXid(text, fault) && !TakeOom(text, fault) && !TakeSegfault(text, fault)) {
    fault.set_kind(std::string(KindOf(text)));
  }
  if (fault.kind().empty()) return std::nullopt;
  fault.set_text(std::string(text));
  return fault;
}

std::optional<v1::KernelFault> ParseKernelRecord(std::string_view record, int64_t boot_ns) {
  const size_t text_at = record.find(';');
  if (text_at == std::string_view::npos) return std::nullopt;
  const std::string_view text = record.substr(text_at + 1);
  auto fault = ParseKernelText(text.substr(0, text.find('\n')));
  // "priority,sequence,microseconds,flags"
  const size_t first = record.find(',');
  const size_t second = record.find(',', first + 1);
  int64_t microseconds = 0;
  if (!fault || second == std::string_view::npos || second > text_at ||
      !ReadNumber(record.substr(second + 1), microseconds)) {
    return std::nullopt;
  }
  fault->set_realtime_ns(boot_ns + microseconds * 1000);
  return fault;
}

std::optional<v1::KernelFault> ParseJournalLine(std::string_view line) {
  constexpr std::string_view kKernel = " kernel: ";
  const size_t at = line.find(kKernel);
  if (at == std::string_view::npos) return std::nullopt;
  auto fault = ParseKernelText(line.substr(at + kKernel.size()));
  const size_t dot = line.find('.');
  int64_t seconds = 0;
  int64_t microseconds = 0;
  if (!fault || dot == std::string_view::npos || !ReadNumber(line, seconds) ||
      !ReadNumber(line.substr(dot + 1), microseconds)) {
    return std::nullopt;
  }
  fault->set_realtime_ns(seconds * 1'000'000'000 + microseconds * 1000);
  return fault;
}

}  // namespace muster::facts
