#include "tests/runtime/controller_fixture.h"

#include <absl/time/clock.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace muster::testing {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

}  // namespace

Follower::Follower(runtime::Controller& controller, const std::string& job, uint64_t after) {
  auto subscription = controller.Watch(
      job, after, [seen = seen_](std::vector<v1::JobEvent> events, std::optional<v1::Job> final) {
        absl::MutexLock lock(&seen->mutex);
        for (auto& event : events) seen->events.push_back(std::move(event));
        if (final) seen->final = std::move(final);
      });
  EXPECT_TRUE(subscription.ok()) << subscription.status();
  if (subscription.ok()) subscription_ = *std::move(subscription);
}

v1::Job Follower::WaitForEnd() {
  const auto ended = [this] { return seen_->final.has_value(); };
  absl::MutexLock lock(&seen_->mutex);
  const bool in_time = seen_->mutex.AwaitWithTimeout(absl::Condition(&ended), kPatience);
  EXPECT_TRUE(in_time) << "the job does not end";
  return in_time ? *seen_->final : v1::Job();
}

bool Follower::WaitFor(const std::string& text) {
  const auto there = [&] {
    for (const auto& event : seen_->events) {
      if (event.text().find(text) != std::string::npos) return true;
    }
    return false;
  };
  absl::MutexLock lock(&seen_->mutex);
  return seen_->mutex.AwaitWithTimeout(absl::Condition(&there), kPatience);
}

std::vector<v1::JobEvent> Follower::events() const {
  absl::MutexLock lock(&seen_->mutex);
  return seen_->events;
}

void ControllerTest::StartController() {
  runtime::Controller::Options options;
  options.state_dir = state_.path();
  options.make_links = [this](const std::string&) { return cluster_.MakeLinks(); };
  options.logs = &logs_;
  options.limits.connect = std::chrono::milliseconds(300);
  options.limits.lost = std::chrono::milliseconds(300);
  options.limits.verify_margin = std::chrono::milliseconds(300);
  options.on_shutdown = [this] { shut_down_ = true; };
  auto controller = runtime::Controller::Create(std::move(options));
  ASSERT_TRUE(controller.ok()) << controller.status();
  controller_ = *std::move(controller);
}

v1::JobSpec ControllerTest::Spec(const std::vector<std::string>& hosts, uint32_t slots) const {
  v1::JobSpec spec;
  spec.add_command("train");
  spec.set_working_dir("/tmp");
  spec.set_output_root(output_.path() + "/output");
  spec.set_submitter_uid(::getuid());
  spec.set_submitter_gid(::getgid());
  spec.mutable_grace()->set_nanos(100'000'000);
  for (const auto& name : hosts) {
    auto& host = *spec.mutable_inventory()->add_hosts();
    host.set_host(name);
    host.set_slots(slots);
  }
  return spec;
}

std::string ControllerTest::Submit(const v1::JobSpec& spec) {
  const auto response = controller_->Submit(spec);
  EXPECT_TRUE(response.ok()) << response.status();
  return response.ok() ? response->job_id() : "";
}

v1::Job ControllerTest::WaitForState(const std::string& job, v1::JobState state) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (absl::Now() < deadline) {
    const auto view = controller_->GetJob(job);
    EXPECT_TRUE(view.ok()) << view.status();
    if (!view.ok() || view->state() == state) return view.value_or(v1::Job());
    absl::SleepFor(absl::Milliseconds(2));
  }
  ADD_FAILURE() << "job " << job << " never got to " << v1::JobState_Name(state);
  return {};
}

void ControllerTest::Stop(const std::string& job, double grace_s) {
  v1::StopRequest request;
  request.set_job(job);
  request.mutable_grace()->set_seconds(static_cast<int64_t>(grace_s));
  request.mutable_grace()->set_nanos(
      static_cast<int32_t>((grace_s - static_cast<int64_t>(grace_s)) * 1e9));
  const auto response = controller_->Stop(request);
  EXPECT_TRUE(response.ok()) << response.status();
}

std::string ControllerTest::ReadFile(const std::string& path) const {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace muster::testing
