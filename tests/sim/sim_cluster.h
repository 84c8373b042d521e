#pragma once

#include <absl/synchronization/notification.h>

#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "controller/runtime/controller.h"
#include "tests/runtime/fake_worker.h"
#include "tests/sim/sim_workers.h"
#include "tests/store/temp_dir.h"

namespace muster::testing {

// The result of a check, waited for.
inline absl::StatusOr<v1::CheckResponse> CheckWith(runtime::Controller& controller,
                                                   const v1::JobSpec& spec) {
  absl::StatusOr<v1::CheckResponse> result;
  absl::Notification done;
  v1::CheckRequest request;
  *request.mutable_spec() = spec;
  const absl::Status begun =
      controller.Check(request, [&](absl::StatusOr<v1::CheckResponse> response) {
        result = std::move(response);
        done.Notify();
      });
  if (!begun.ok()) return begun;
  done.WaitForNotification();
  return result;
}

// A controller with its store and links over simulated workers.
class SimCluster {
 public:
  // `logs`: instead of a log organ without files; outlives the cluster.
  explicit SimCluster(SimWorkers::Faults faults, logs::LogRegistry* logs = nullptr)
      : workers_(std::move(faults)) {
    runtime::Controller::Options options;
    options.state_dir = state_.path();
    options.make_links = [this](const std::string& id) {
      controller_id_ = id;
      return workers_.MakeLinks(id);
    };
    options.logs = logs != nullptr ? logs : &logs_;
    controller_ = *runtime::Controller::Create(std::move(options));
  }

  // Hosts n000, n001 ...
  static v1::JobSpec Spec(int hosts, std::chrono::milliseconds timeout) {
    v1::JobSpec spec;
    for (int i = 0; i < hosts; ++i) {
      const std::string number = std::to_string(1000 + i).substr(1);
      v1::Host& host = *spec.mutable_inventory()->add_hosts();
      host.set_host("n" + number);
      host.set_slots(8);
    }
    spec.mutable_check_timeout()->set_seconds(timeout.count() / 1000);
    spec.mutable_check_timeout()->set_nanos(
        static_cast<int32_t>(timeout.count() % 1000 * 1'000'000));
    return spec;
  }

  absl::StatusOr<v1::CheckResponse> Check(const v1::JobSpec& spec) {
    return CheckWith(*controller_, spec);
  }

  runtime::Controller& controller() { return *controller_; }
  SimWorkers& workers() { return workers_; }
  const std::string& controller_id() const { return controller_id_; }

 private:
  TempDir state_;
  SimWorkers workers_;
  FakeLogRegistry logs_;
  std::string controller_id_;
  std::unique_ptr<runtime::Controller> controller_;
};

}  // namespace muster::testing
