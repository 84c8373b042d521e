#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "controller/preflight/check_functions.h"

namespace muster::preflight {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kLowStateDisk = kGiB;  // for logs
constexpr uint64_t kLowCheckpointDisk = 10 * kGiB;
constexpr uint64_t kSmallShm = kGiB;       // NCCL and data loaders live there; Docker gives 64 MiB
constexpr uint64_t kEnoughMemlock = kGiB;  // pinned buffers of one rank
constexpr uint64_t kFewFiles = 4096;
constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();
constexpr int64_t kDayS = 86'400;
constexpr int64_t kCertificateWarningS = 14 * kDayS;
constexpr int64_t kMaxClockOffsetNs = 2'000'000'000;

size_t ActivePorts(const v1::ProbeResult& probe) {
  return static_cast<size_t>(
      std::count_if(probe.rdma().begin(), probe.rdma().end(),
                    [](const v1::RdmaPort& port) { return port.state() == "ACTIVE"; }));
}

std::string InactivePorts(const v1::ProbeResult& probe) {
  std::string text;
  for (const v1::RdmaPort& port : probe.rdma()) {
    if (port.state() == "ACTIVE") continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", port.device(), "/", port.port(), " ",
                    port.state());
  }
  return text;
}

void CheckFolder(const NodeFacts& node, const v1::FolderFact& folder, uint64_t low,
                 const std::string& use, Findings& out) {
  if (folder.timed_out()) {
    out.push_back({"disk", Severity::kError, node.host, folder.error(), "",
                   absl::StrCat("on ", node.host, ": the file system of ", folder.path(),
                                " hangs; mount it anew (umount -f -l)")});
  } else if (!folder.error().empty()) {
    out.push_back({"disk", Severity::kError, node.host,
                   absl::StrCat("ranks can't write to ", folder.path(), ": ", folder.error()), "",
                   absl::StrCat("make ", folder.path(), " on ", node.host,
                                " and give it to the user who runs the ranks")});
  } else if (folder.free_bytes() < low) {
    out.push_back({"disk", Severity::kWarning, node.host,
                   absl::StrCat("only ", folder.free_bytes() >> 20, " MiB are free for ", use,
                                " in ", folder.path()),
                   "", absl::StrCat("free some space on ", node.host)});
  }
}

}  // namespace

void CheckVersion(const Nodes& nodes, const Options& options, Findings& out) {
  for (const auto& node : nodes) {
    if (!node.absent.empty() || options.controller_version.empty() ||
        node.hello.version() == options.controller_version) {
      continue;
    }
    out.push_back({"version", Severity::kWarning, node.host,
                   absl::StrCat("musterd is version ", node.hello.version(), ", the controller is ",
                                options.controller_version),
                   "", absl::StrCat("restart musterd on ", node.host, " from the same build")});
  }
}

void CheckCertificate(const Nodes& nodes, const Options&, Findings& out) {
  for (const auto& node : nodes) {
    const int64_t ends_s = node.hello.certificate_ends_s();
    if (!node.absent.empty() || ends_s == 0) continue;
    const int64_t left_s = ends_s - node.probe.realtime_ns() / 1'000'000'000;
    if (left_s >= kCertificateWarningS) continue;
    const std::string value =
        left_s < 0 ? absl::StrCat("its certificate for direct connections has expired ",
                                  -left_s / kDayS, " days ago")
                   : absl::StrCat("its certificate for direct connections ends in ", left_s / kDayS,
                                  " days");
    out.push_back({"certificate", Severity::kWarning, node.host, value, "",
                   absl::StrCat("muster cert rotate ", node.host)});
  }
}

void CheckClock(const Nodes& nodes, const Options&, Findings& out) {
  for (const auto& node : nodes) {
    if (!node.clock) continue;
    const int64_t sure = std::llabs(node.clock->offset_ns) - node.clock->uncertainty_ns;
    if (sure <= kMaxClockOffsetNs) continue;
    out.push_back(
        {"clock", Severity::kWarning, node.host,
         absl::StrCat("its clock is ", std::llabs(node.clock->offset_ns) / 1'000'000, " ms ",
                      node.clock->offset_ns > 0 ? "ahead of" : "behind",
                      " the controller's (uncertainty ", node.clock->uncertainty_ns / 1'000'000,
                      " ms)"),
         "", absl::StrCat("start a time service on ", node.host, ": timedatectl set-ntp true")});
  }
}

// Folders come in this order: the state folder, /dev/shm, those that the ranks write to.
void CheckDisk(const Nodes& nodes, const Options&, Findings& out) {
  for (const auto& node : nodes) {
    for (int i = 0; i < node.probe.folders_size(); ++i) {
      if (i == 1) continue;
      CheckFolder(node, node.probe.folders(i), i == 0 ? kLowStateDisk : kLowCheckpointDisk,
                  i == 0 ? "logs" : "checkpoints", out);
    }
  }
}

void CheckShm(const Nodes& nodes, const Options&, Findings& out) {
  for (const auto& node : nodes) {
    if (node.probe.folders_size() < 2) continue;
    const v1::FolderFact& shm = node.probe.folders(1);
    if (!shm.error().empty()) {
      out.push_back({"shm", Severity::kError, node.host,
                     "ranks can't use shared memory: " + shm.error(), "",
                     absl::StrCat("on ", node.host, ": mount -t tmpfs tmpfs /dev/shm")});
    } else if (shm.total_bytes() < kSmallShm) {
      out.push_back({"shm", Severity::kWarning, node.host,
                     absl::StrCat("/dev/shm has only ", shm.total_bytes() >> 20,
                                  " MiB: NCCL and data loaders share memory there"),
                     "",
                     absl::StrCat("on ", node.host,
                                  ": mount -o remount,size=16G /dev/shm (a container: docker run "
                                  "--shm-size=16g)")});
    }
  }
}

void CheckLimits(const Nodes& nodes, const Options&, Findings& out) {
  for (const auto& node : nodes) {
    // Old workers do not say.
    if (!node.absent.empty() || node.probe.nofile() == 0) continue;
    const uint64_t memlock = node.probe.memlock_bytes();
    if (ActivePorts(node.probe) > 0 && memlock != kUnlimited) {
      out.push_back(
          {"limits", memlock < kEnoughMemlock ? Severity::kError : Severity::kWarning, node.host,
           absl::StrFormat("ranks may lock only %u KiB of memory (memlock), so RDMA can't "
                           "register its buffers",
                           memlock >> 10),
           "",
           "LimitMEMLOCK=infinity in musterd's systemd unit (limits.conf does not reach "
           "daemons), or `* hard memlock unlimited` in /etc/security/limits.conf for ssh; "
           "then start musterd anew"});
    }
    if (node.probe.nofile() < kFewFiles) {
      out.push_back({"limits", Severity::kWarning, node.host,
                     absl::StrCat("ranks may open only ", node.probe.nofile(), " files"), "",
                     "LimitNOFILE=1048576 in musterd's systemd unit, or `* hard nofile 1048576` in "
                     "/etc/security/limits.conf; then start musterd anew"});
    }
  }
}

void CheckRdma(const Nodes& nodes, const Options&, Findings& out) {
  std::vector<std::string> counts;
  counts.reserve(nodes.size());
  for (const auto& node : nodes)
    counts.push_back(node.absent.empty() ? absl::StrCat(ActivePorts(node.probe)) : "");
  const std::string majority = Majority(counts);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (counts[i].empty() || majority.empty() || counts[i] == majority) continue;
    const std::string inactive = InactivePorts(nodes[i].probe);
    out.push_back({"rdma", Severity::kWarning, nodes[i].host,
                   absl::StrCat(counts[i], " RDMA ports are ACTIVE",
                                inactive.empty() ? "" : " (" + inactive + ")"),
                   majority,
                   absl::StrCat("on ", nodes[i].host, ": ibstat; check cable and switch")});
  }
}

}  // namespace muster::preflight
