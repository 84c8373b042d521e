// What an AttemptRunner looks at beyond processes: ports when a rank has failed; devices, the
// head's port and the kernel's log when none is left.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "common/unique_fd.h"
#include "worker/daemon/attempt_runner.h"
#include "worker/facts/port.h"
#include "worker/facts/port_holder.h"
#include "worker/facts/port_words.h"
#include "worker/shim/frame.h"
#include "worker/shim/rank_spec.h"

namespace muster::worker {
namespace {

using std::chrono::milliseconds;

// A driver gives memory back some time after its process has ended.
constexpr milliseconds kPatience(3'000);
constexpr milliseconds kPause(200);
constexpr int64_t kToolSeconds = 3;
constexpr off_t kWords = 16 << 10;

// The last words of a log file.
std::string LastWords(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return "";
  const off_t size = lseek(fd.get(), 0, SEEK_END);
  const off_t from = std::max<off_t>(size - kWords, 0);
  std::string text(static_cast<size_t>(std::max<off_t>(size - from, 0)), '\0');
  const ssize_t n = pread(fd.get(), text.data(), text.size(), from);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

std::string ValueOf(const shim::RankSpec& spec, const std::string& name) {
  for (const auto& [known, value] : spec.env) {
    if (known == name) return value;
  }
  return "";
}

}  // namespace

std::vector<std::string> AttemptRunner::PortHolders(uint32_t rank) {
  const std::string folder = ranks::RankFolder(folder_, rank);
  const std::string words =
      LastWords(folder + "/" + shim::kLogFiles[0]) + LastWords(folder + "/" + shim::kLogFiles[1]);
  if (!facts::SaysPortInUse(words)) return {};
  std::string error;
  const auto file = shim::ReadWholeFile(folder + "/" + shim::kSpecFile, shim::kMaxPayload, error);
  const auto spec = file ? shim::DecodeRankSpec(*file, error) : std::nullopt;
  const std::string port = spec ? ValueOf(*spec, "MASTER_PORT") : "";
  return facts::DescribePortsInUse(words, spec ? ValueOf(*spec, "MASTER_ADDR") : "",
                                   static_cast<uint32_t>(std::strtoul(port.c_str(), nullptr, 10)),
                                   node_.proc);
}

void AttemptRunner::Inspect(std::optional<int64_t> kernel_since_ns) {
  inspect_until_ = node_.reactor.clock().Now() + kPatience;
  kernel_.reset();
  AskInspection(kernel_since_ns);
}

void AttemptRunner::AskInspection(std::optional<int64_t> kernel_since_ns) {
  const bool ask = kernel_since_ns || !record().baseline().empty();
  if (!ask) {
    inspect_timer_ = node_.reactor.After(milliseconds(0), [this] {
      inspect_timer_ = 0;
      TakeInspection({}, false);
    });
    return;
  }
  v1::Probe probe;
  probe.set_end_kernel_since_ns(kernel_since_ns.value_or(-1));
  probe.mutable_time_limit()->set_seconds(kToolSeconds);
  callbacks_.ask(probe,
                 [this, alive = std::weak_ptr<const bool>(alive_)](const v1::ProbeResult& answer) {
                   if (!alive.expired()) TakeInspection(answer, true);
                 });
}

void AttemptRunner::TakeInspection(const v1::ProbeResult& answer, bool asked) {
  ranks::Inspection inspection;
  if (asked && !record().baseline().empty()) {
    const std::string& error =
        answer.probe_error().empty() ? answer.device_error() : answer.probe_error();
    if (answer.devices().empty()) {
      inspection.unverified =
          "its devices could not be asked: " + (error.empty() ? "they are gone" : error);
    }
    inspection.held = ranks::HeldDevices(record().baseline(), answer.devices());
  }
  if (answer.has_kernel()) kernel_ = answer.kernel();
  InspectPort(inspection);
  if (!inspection.held.empty() && node_.reactor.clock().Now() < inspect_until_) {
    inspect_timer_ = node_.reactor.After(kPause, [this] {
      inspect_timer_ = 0;
      AskInspection(std::nullopt);
    });
    return;
  }
  inspection.kernel = kernel_;
  machine_.OnInspected(std::move(inspection));
  Settle();
}

void AttemptRunner::InspectPort(ranks::Inspection& inspection) const {
  if (record().head_port() == 0) return;
  const auto listener = facts::FindListener(record().head_address(), record().head_port());
  if (!listener) return;
  const std::string text = "port " + std::to_string(record().head_port()) + " is held by " +
                           facts::DescribeHolder(*listener, node_.proc);
  // A process that bears the mark of another attempt is not this one's.
  const pid_t pid = facts::HolderOf(*listener, node_.proc);
  const std::string environment = node_.proc.Environ(pid).value_or("");
  if (pid != 0 && environment.find("MUSTER_ATTEMPT=") != std::string::npos) {
    inspection.notes.push_back(text + ", of another job");
  } else {
    inspection.held.push_back(text);
  }
}

}  // namespace muster::worker
