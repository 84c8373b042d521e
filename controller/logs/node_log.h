#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/logs/end_journal.h"
#include "controller/logs/growth.h"
#include "controller/logs/log_registry.h"
#include "controller/logs/merged_file.h"
#include "controller/logs/packer.h"
#include "controller/logs/stream_file.h"
#include "controller/logs/sync.h"

namespace muster::logs {

// What a step of the log organ wants to tell others, once no lock is held.
struct Outbox {
  std::vector<std::pair<nodes::LogSink::Ack, v1::LogAck>> acks;
  std::vector<absl::Status>
      reports;  // a write failed (once until it works again), or OK: it works again

  // One fault of several streams, such as a journal that can't be written, is reported once.
  void Deliver(const v1::AttemptId& id,
               const std::function<void(const v1::AttemptId&, const absl::Status&)>& on_report);
};

// The logs of one node's ranks in one attempt. Links write into it (OnChunk), the log thread makes
// durable what they wrote and acknowledges it (a round): two steps, so that a slow disk sync does
// not hold up a link.
class NodeLog {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `open_files`, `packer` and `growth` outlive the object.
  NodeLog(const AttemptFiles& files, size_t node, OpenFiles& open_files, Packer& packer,
          Growth& growth);

  // A former process had this stream to its end. Before anything else.
  void RestoreEnd(const EndJournal::End& end);

  struct Taken {
    uint64_t bytes = 0;  // new ones
    bool ended = false;  // the stream has its last byte
  };
  // Takes a chunk, on a link's thread. A round has work after it.
  Taken OnChunk(const v1::LogChunk& chunk, const nodes::LogSink::Ack& ack, Outbox& out);

  // The log thread's round, in three steps with the slow part between them and no lock held:
  // what must be synced (the caller does it) ...
  std::vector<SyncJob> Begin(Outbox& out);
  // ... what has come to its end with that (the caller writes it to the journal) ...
  std::vector<EndJournal::End> Synced(const std::vector<SyncJob>& jobs, Outbox& out);
  // ... and what to tell the node. `recorded`: how the journal went. True if it wants another round
  // although no chunk comes.
  bool Conclude(const std::vector<EndJournal::End>& ends, const absl::Status& recorded,
                TimePoint now, std::chrono::milliseconds retry, Outbox& out);

  // The node is gone: nothing is taken any more.
  void Abandon();
  // Every stream is whole and durable, or the node was abandoned.
  bool Done() const;
  // After Done: makes the merged file durable and lets go of the files.
  void Finish(Outbox& out);

 private:
  struct StreamState {
    StreamState(uint32_t global_rank, std::unique_ptr<StreamFile> stream_file)
        : rank(global_rank), file(std::move(stream_file)) {}

    uint32_t rank;
    std::unique_ptr<StreamFile> file;
    nodes::LogSink::Ack ack;
    bool ended = false;     // the last byte is in the file
    bool recorded = false;  // ... and durable, with its end in the journal
    uint64_t recorded_bytes = 0;
    bool answer_due = false;  // something is durable that the node may not know of
    bool failed = false;      // bytes were refused: they must come again
    bool reported = false;    // ... and the owner knows why
    bool folder_synced = false;
    TimePoint ask_again{};
  };
  StreamState* Find(uint32_t rank, v1::Stream stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t GrowthIndex(const StreamState& state) const;
  bool EnsureRecovered(Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Recover(Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(const v1::LogChunk& chunk, StreamState& state, Outbox& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Merge(StreamState& state, Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MergeAll(Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(StreamState& state, const absl::Status& status, Outbox& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AfterSync(const SyncJob& job, Outbox& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RecordEnd(StreamState& state, const absl::Status& recorded, Outbox& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Answer(StreamState& state, TimePoint now, std::chrono::milliseconds retry, Outbox& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const v1::AttemptId id_;
  const uint32_t uid_;
  const uint32_t gid_;
  const uint32_t first_rank_;
  const int64_t clock_offset_ns_;
  OpenFiles& open_files_;
  const Rotation rotation_;
  Growth& growth_;
  std::atomic<bool> dirty_{true};  // a round has work; at first: to recover

  mutable absl::Mutex mutex_;
  std::vector<StreamState> streams_ ABSL_GUARDED_BY(mutex_);  // never resized after construction
  MergedFile merged_ ABSL_GUARDED_BY(mutex_);
  bool in_round_ ABSL_GUARDED_BY(mutex_) = false;
  bool recovered_ ABSL_GUARDED_BY(mutex_) = false;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  bool recover_reported_ ABSL_GUARDED_BY(mutex_) = false;
  bool merge_due_ ABSL_GUARDED_BY(mutex_) = false;
  bool merge_reported_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::logs
