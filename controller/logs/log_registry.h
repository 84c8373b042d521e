#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "controller/nodes/node_link.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/worker.pb.h"

namespace muster::logs {

// Where an attempt's log bytes go.
struct AttemptFiles {
  v1::AttemptId id;
  v1::Plan plan;
  std::string output_dir;  // .../output/<time>_<name>, exists
  uint32_t uid = 0;        // owner of what is written
  uint32_t gid = 0;
  std::string run_id;  // TORCHELASTIC_RUN_ID of the attempt, for the tree in torchrun's shape;
                       // empty: the job's id
  uint64_t rotate_bytes = 0;              // log files are rotated at this size; 0 = never
  std::vector<int64_t> clock_offsets_ns;  // of the plan's nodes: their clock minus ours; missing: 0
};

// The engine's view of the log organ: it says which attempts exist and learns when their logs are
// whole. The bytes themselves go from links straight to disk (LogSink), never through the engine
// thread. Any thread.
class LogRegistry : public nodes::LogSink {
 public:
  // Makes the attempt's folders and files; idempotent, also after a controller restart, when
  // offsets continue from what is on disk. Chunks of unknown attempts are dropped without an ack,
  // so the worker keeps them.
  virtual absl::Status Open(const AttemptFiles& files) = 0;
  // True once every stream of every rank has been received to its end and is durable.
  virtual bool Complete(const v1::AttemptId& id) const = 0;
  // Called once for each attempt when it becomes complete, on a thread of the log organ.
  virtual void SetCompleteCallback(std::function<void(const v1::AttemptId&)> callback) = 0;
  // A node is gone for good: its streams will not grow any more and count as complete.
  virtual void AbandonNode(const v1::AttemptId& id, const std::string& host) = 0;
};

}  // namespace muster::logs
