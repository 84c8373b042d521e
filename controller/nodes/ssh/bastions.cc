#include "controller/nodes/ssh/bastions.h"

namespace muster::nodes::ssh {
namespace {

constexpr int kAtOnce = 8;

}  // namespace

DialGate::Place Bastions::Enter(const std::string& host, const StopSignal& stop) {
  DialGate* gate = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    std::unique_ptr<DialGate>& slot = gates_[host];
    if (slot == nullptr) slot = std::make_unique<DialGate>(kAtOnce);
    gate = slot.get();
  }
  return gate->Enter(stop);
}

}  // namespace muster::nodes::ssh
