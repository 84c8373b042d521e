#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <string>
#include <utility>
#include <vector>

#include "controller/nodes/node_link.h"

namespace muster::nodes {

// Keeps all that a link tells, as text: "up fake", "lost <reason>", "observed 3", "probe 7". Any
// thread.
class Recorder : public LinkListener, public LogSink {
 public:
  void OnUp(const std::string& /*host*/, const v1::WorkerHello& hello) override {
    Add("up " + hello.node_name());
  }
  void OnLost(const std::string& /*host*/, const absl::Status& why) override {
    Add("lost " + why.ToString());
  }
  void OnMessage(const std::string& /*host*/, v1::AttachResponse message) override {
    Add(message.has_observed() ? "observed " + std::to_string(message.observed().generation())
                               : "probe " + std::to_string(message.probe_result().probe_id()));
  }
  void OnLog(const std::string& /*host*/, v1::LogChunk chunk, Ack ack) override {
    v1::LogAck message;
    *message.mutable_id() = chunk.id();
    message.set_rank(chunk.rank());
    message.set_stream(chunk.stream());
    message.set_offset(chunk.offset() + chunk.data().size());
    {
      absl::MutexLock lock(&mutex_);
      last_ack_ = ack;
    }
    Add("log " + std::to_string(chunk.data().size()));
    ack(message);
  }

  // Waits until some event begins with `prefix` for the `count`th time; false after ten seconds.
  bool WaitFor(const std::string& prefix, size_t count = 1) {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&] {
      mutex_.AssertHeld();
      return Count(prefix) >= count;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), absl::Seconds(10));
  }
  // The newest event that begins with `prefix`.
  std::string Last(const std::string& prefix) {
    absl::MutexLock lock(&mutex_);
    std::string found;
    for (const std::string& event : events_) {
      if (event.rfind(prefix, 0) == 0) found = event;
    }
    return found;
  }
  std::vector<std::string> Events() {
    absl::MutexLock lock(&mutex_);
    return events_;
  }
  Ack last_ack() {
    absl::MutexLock lock(&mutex_);
    return last_ack_;
  }

 private:
  void Add(std::string event) {
    absl::MutexLock lock(&mutex_);
    events_.push_back(std::move(event));
  }
  size_t Count(const std::string& prefix) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    size_t count = 0;
    for (const std::string& event : events_) count += event.rfind(prefix, 0) == 0 ? 1 : 0;
    return count;
  }

  absl::Mutex mutex_;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mutex_);
  Ack last_ack_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::nodes
