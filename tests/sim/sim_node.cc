#include "tests/sim/sim_node.h"

#include <utility>

#include "common/clock.h"
#include "common/version.h"

namespace muster::testing {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

}  // namespace

v1::WorkerHello SimNode::Hello() const {
  v1::WorkerHello hello;
  hello.set_protocol(kProtocol);
  hello.set_version(kVersion);
  hello.set_node_name(name_);
  hello.set_boot_id("boot-" + name_);
  hello.set_net_ns(1);
  hello.set_state_dir("/var/tmp/muster-0/" + name_);
  for (uint32_t i = 0; i < 8; ++i) {
    v1::Device& device = *hello.add_devices();
    device.set_index(i);
    device.set_kind("cuda");
    device.set_name("NVIDIA H100 80GB HBM3");
    device.set_memory_total_bytes(80 * kGiB);
  }
  return hello;
}

v1::ProbeResult SimNode::Answer(const v1::Probe& probe) const {
  v1::ProbeResult result;
  result.set_probe_id(probe.probe_id());
  result.set_received_ns(Clock::Real().RealtimeNs());
  if (!probe.program().empty()) result.set_program_path("/opt/bin/" + probe.program());
  *result.mutable_devices() = Hello().devices();
  for (const char* path : {"/var/tmp/muster-0", "/dev/shm"}) {
    v1::FolderFact& folder = *result.add_folders();
    folder.set_path(path);
    folder.set_free_bytes(100 * kGiB);
    folder.set_total_bytes(200 * kGiB);
  }
  result.set_memlock_bytes(~uint64_t{0});
  result.set_nofile(1 << 20);
  for (const auto& path : probe.readable()) result.add_files()->set_path(path);
  if (probe.want_port()) result.set_port(29500);
  v1::NetworkResult& network = *result.mutable_network();
  network.set_iface("eth0");
  for (const v1::NetworkPeer& peer : probe.network().connect()) {
    v1::PeerResult& reached = *network.add_connected();
    reached.set_node(peer.node());
    reached.set_address(peer.address());
    reached.set_microseconds(100);
  }
  for (const uint32_t node : probe.network().expect()) network.add_heard(node);
  result.set_realtime_ns(Clock::Real().RealtimeNs());
  return result;
}

std::vector<v1::AttachResponse> SimNode::Take(const v1::Desired& wish) {
  std::vector<v1::AttachResponse> said;
  const auto say = [&](const v1::Observed& observed) {
    *said.emplace_back().mutable_observed() = observed;
    if (observed.has_end() && wish.goal() != v1::GOAL_FORGOTTEN) EndLogs(observed, said);
  };
  const v1::Observed accepted = node_.Apply(wish);
  const std::vector<v1::Observed> settled = node_.Settle();
  if (settled.empty()) say(accepted);
  for (const v1::Observed& observed : settled) say(observed);
  for (const auto& [attempt, rank] : node_.Running()) {
    node_.Exit(attempt, rank, 0, 0, Clock::Real().RealtimeNs());
  }
  for (const v1::Observed& observed : node_.Settle()) say(observed);
  return said;
}

std::vector<v1::AttachResponse> SimNode::Reports() const {
  std::vector<v1::AttachResponse> said;
  for (v1::Observed& observed : node_.ReportAll())
    *said.emplace_back().mutable_observed() = std::move(observed);
  return said;
}

void SimNode::EndLogs(const v1::Observed& observed, std::vector<v1::AttachResponse>& said) {
  for (const v1::RankStatus& rank : observed.ranks()) {
    for (const v1::Stream stream : {v1::STREAM_STDOUT, v1::STREAM_STDERR, v1::STREAM_EVENTS}) {
      v1::LogChunk& chunk = *said.emplace_back().mutable_log();
      *chunk.mutable_id() = observed.id();
      chunk.set_rank(rank.rank());
      chunk.set_stream(stream);
      chunk.set_end(true);
      ++unacked_;
    }
  }
}

void SimNode::Take(const v1::LogAck& ack) {
  unacked_ -= ack.end() ? 1 : 0;
}

}  // namespace muster::testing
