#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "controller/logs/file_registry.h"

namespace muster::logs {

// An attempt of `nodes` nodes with `per_node` ranks each, on 127.0.0.2, 127.0.0.3 ...
inline AttemptFiles MakeAttempt(const std::string& output_dir, uint32_t nodes, uint32_t per_node) {
  AttemptFiles files;
  files.id.set_controller_id("c1");
  files.id.set_job_id("7");
  files.output_dir = output_dir;
  files.plan.set_name("tiny");
  files.plan.set_world(nodes * per_node);
  for (uint32_t n = 0; n < nodes; ++n) {
    v1::NodePlan& node = *files.plan.add_nodes();
    node.mutable_host()->set_host("127.0.0." + std::to_string(n + 2));
    node.set_first_rank(n * per_node);
    node.set_num_ranks(per_node);
    for (uint32_t l = 0; l < per_node; ++l) {
      v1::RankPlan& rank = *files.plan.add_ranks();
      rank.set_rank(n * per_node + l);
      rank.set_local_rank(l);
      rank.set_node(n);
    }
  }
  return files;
}

inline v1::LogChunk MakeChunk(const AttemptFiles& files, uint32_t rank, v1::Stream stream,
                              uint64_t offset, std::string data, bool end = false) {
  v1::LogChunk chunk;
  *chunk.mutable_id() = files.id;
  chunk.set_rank(rank);
  chunk.set_stream(stream);
  chunk.set_offset(offset);
  chunk.set_data(std::move(data));
  chunk.set_end(end);
  return chunk;
}

inline std::string HostOf(const AttemptFiles& files, uint32_t rank) {
  return files.plan.nodes(static_cast<int>(files.plan.ranks(static_cast<int>(rank)).node()))
      .host()
      .host();
}

// What a node hears back. Any thread.
class Acks {
 public:
  using Key = std::pair<uint32_t, v1::Stream>;

  nodes::LogSink::Ack Callback() {
    return [this](const v1::LogAck& ack) {
      absl::MutexLock lock(&mutex_);
      all_.push_back(ack);
      newest_[{ack.rank(), ack.stream()}] = ack;
    };
  }
  // Waits until the stream's newest ack has that offset; false after ten seconds.
  bool WaitFor(uint32_t rank, v1::Stream stream, uint64_t offset, bool end = false) {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&] {
      mutex_.AssertHeld();
      const auto found = newest_.find({rank, stream});
      return found != newest_.end() && found->second.offset() == offset &&
             found->second.end() == end;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), absl::Seconds(10));
  }
  // Waits until so many acks have come.
  bool WaitForCount(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&] {
      mutex_.AssertHeld();
      return all_.size() >= count;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), absl::Seconds(10));
  }
  std::vector<v1::LogAck> All() {
    absl::MutexLock lock(&mutex_);
    return all_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<v1::LogAck> all_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, v1::LogAck> newest_ ABSL_GUARDED_BY(mutex_);
};

inline FileRegistry::Options QuickOptions() {
  FileRegistry::Options options;
  options.sync_interval = std::chrono::milliseconds(5);
  options.retry_interval = std::chrono::milliseconds(20);
  return options;
}

}  // namespace muster::logs
