#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "controller/runtime/controller.h"
#include "tests/runtime/fake_worker.h"
#include "tests/store/temp_dir.h"

namespace muster::testing {

// Collects what a watcher gets, and waits for its end.
class Follower {
 public:
  Follower(runtime::Controller& controller, const std::string& job, uint64_t after = 0);
  // The job as it ended; fails the test after ten seconds.
  v1::Job WaitForEnd();
  // Until an event contains the text.
  bool WaitFor(const std::string& text);
  std::vector<v1::JobEvent> events() const;
  void Unsubscribe() { subscription_.reset(); }

 private:
  struct Seen {
    mutable absl::Mutex mutex;
    std::vector<v1::JobEvent> events;
    std::optional<v1::Job> final;
  };
  const std::shared_ptr<Seen> seen_ = std::make_shared<Seen>();
  std::unique_ptr<api::Backend::Subscription> subscription_;
};

// A controller over fake workers on hosts n1, n2, n3, with short time-outs.
class ControllerTest : public ::testing::Test {
 protected:
  void SetUp() override { StartController(); }
  void StartController();
  // As kill -9 would look to the nodes and the store, but for the missing crash.
  void StopController() { controller_.reset(); }

  v1::JobSpec Spec(const std::vector<std::string>& hosts, uint32_t slots = 1) const;
  std::string Submit(const v1::JobSpec& spec);
  v1::Job WaitForState(const std::string& job, v1::JobState state);
  void Stop(const std::string& job, double grace_s);
  std::string ReadFile(const std::string& path) const;

  TempDir state_;
  TempDir output_;
  FakeCluster cluster_{{"n1", "n2", "n3"}};
  FakeLogRegistry logs_;
  bool shut_down_ = false;
  std::unique_ptr<runtime::Controller> controller_;
};

}  // namespace muster::testing
