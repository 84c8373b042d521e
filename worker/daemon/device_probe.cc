#include "worker/daemon/device_probe.h"

#include <chrono>
#include <utility>

#include "common/log.h"
#include "worker/facts/devices.h"

namespace muster::worker {
namespace {

constexpr int64_t kLimitSeconds = 8;
// Below the controllers' patience with a hello, above what a sound tool takes.
constexpr std::chrono::milliseconds kPatience(2'500);

}  // namespace

void DeviceProbe::Ask(Done done) {
  if (fake_ > 0) {
    done(facts::FakeDevices(fake_));
    return;
  }
  const auto asked = std::make_shared<Asked>();
  asked->done = std::move(done);
  asked->patience = reactor_.After(kPatience, [asked] {
    asked->told = true;
    asked->done({});
  });
  waiting_.push_back(asked);
  if (waiting_.size() > 1) return;
  v1::Probe probe;
  probe.mutable_time_limit()->set_seconds(kLimitSeconds);
  helper_.Ask(probe, [this](const v1::ProbeResult& result) { Answer(result); });
}

void DeviceProbe::Answer(const v1::ProbeResult& result) {
  for (const std::string* error : {&result.device_error(), &result.probe_error()}) {
    if (!error->empty()) log::Warning("no devices reported: " + *error);
  }
  const std::vector<v1::Device> devices(result.devices().begin(), result.devices().end());
  for (const auto& asked : std::exchange(waiting_, {})) {
    reactor_.Cancel(asked->patience);
    if (!asked->told || !devices.empty()) asked->done(devices);
  }
}

}  // namespace muster::worker
