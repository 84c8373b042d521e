#include "worker/daemon/prober.h"

#include <utility>

#include "common/utf8.h"
#include "worker/facts/port.h"

namespace muster::worker {
namespace {

// A controller that asked and went away must not keep the port for ever.
constexpr std::chrono::minutes kHoldLimit(5);
// The range may be full of other nodes' preflight listeners on this machine, which go soon.
constexpr std::chrono::milliseconds kPortPatience(1'000);
constexpr std::chrono::milliseconds kPortPause(50);

}  // namespace

Prober::Prober(Reactor& reactor, const facts::ProcReader& proc, ProbeHelper& helper)
    : reactor_(reactor), proc_(proc), helper_(helper) {}

Prober::~Prober() {
  for (const auto& [attempt, held] : held_) reactor_.Cancel(held.expiry);
  for (const auto& [attempt, seen] : seen_) reactor_.Cancel(seen.expiry);
}

void Prober::Probe(const v1::Probe& probe, const std::string& attempt, Done done) {
  const int64_t received_ns = reactor_.clock().RealtimeNs();
  helper_.Ask(
      probe, [this, probe, attempt, received_ns, done = std::move(done)](v1::ProbeResult result) {
        result.set_received_ns(received_ns);
        if (!probe.release_port()) Remember(attempt, result);
        Finish(probe, attempt, reactor_.clock().Now() + kPortPatience, std::move(result), done);
      });
}

// After the helper: its listener may have used a port of the same range.
void Prober::Finish(const v1::Probe& probe, const std::string& attempt, Time give_up,
                    v1::ProbeResult result, const Done& done) {
  if (probe.want_port()) HoldPort(probe, attempt, result);
  if (!result.port_error().empty() && probe.first_port() != 0 && reactor_.clock().Now() < give_up) {
    result.clear_port_error();
    reactor_.After(kPortPause, [this, probe, attempt, give_up, result, done] {
      Finish(probe, attempt, give_up, result, done);
    });
    return;
  }
  if (probe.release_port()) ReleasePort(attempt);
  result.set_realtime_ns(reactor_.clock().RealtimeNs());
  done(std::move(result));
}

void Prober::HoldPort(const v1::Probe& probe, const std::string& attempt, v1::ProbeResult& result) {
  const auto it = held_.find(attempt);
  if (it != held_.end() && (probe.port() == 0 || probe.port() == it->second.port)) {
    result.set_port(it->second.port);
    return;
  }
  ReleasePort(attempt);
  facts::HeldPort port = facts::HoldPort(
      probe.port_address(), {probe.port(), probe.first_port(), probe.last_port()}, proc_);
  if (!port.socket) {
    result.set_port_error(ToValidUtf8(port.error));
    return;
  }
  result.set_port(port.port);
  const auto expiry = reactor_.After(kHoldLimit, [this, attempt] { held_.erase(attempt); });
  held_.emplace(attempt, Held{std::move(port.socket), port.port, expiry});
}

void Prober::Remember(const std::string& attempt, const v1::ProbeResult& result) {
  if (result.devices().empty()) return;
  if (const auto known = seen_.find(attempt); known != seen_.end())
    reactor_.Cancel(known->second.expiry);
  const auto expiry = reactor_.After(kHoldLimit, [this, attempt] { seen_.erase(attempt); });
  seen_.insert_or_assign(attempt, Seen{result.devices(), expiry});
}

google::protobuf::RepeatedPtrField<v1::Device> Prober::Devices(const std::string& attempt) const {
  const auto it = seen_.find(attempt);
  if (it == seen_.end()) return {};
  return it->second.devices;
}

void Prober::ReleasePort(const std::string& attempt) {
  const auto it = held_.find(attempt);
  if (it == held_.end()) return;
  reactor_.Cancel(it->second.expiry);
  held_.erase(it);
}

}  // namespace muster::worker
