#pragma once

#include <absl/status/status.h>

#include <string>

#include "muster/v1/worker.pb.h"
#include "worker/spool/log_spool.h"

namespace muster::worker {

// One open stream of a controller, as the worker sees it. Called on the reactor thread.
class Session : public spool::ChunkSink {
 public:
  // Queues a message; dropped once the stream is closed.
  virtual void Send(v1::AttachResponse message) = 0;
  // Ends the stream with this status after what is queued.
  virtual void Close(const absl::Status& status) = 0;
  // The last message has been dealt with: read the next.
  virtual void ReadNext() = 0;

  void SendChunk(v1::LogChunk chunk) override {
    v1::AttachResponse message;
    *message.mutable_log() = std::move(chunk);
    Send(std::move(message));
  }

  // Set by the worker from the hello; empty before.
  std::string controller_id;
  // Our hello has been queued; nothing may come before it.
  bool welcomed = false;
};

}  // namespace muster::worker
