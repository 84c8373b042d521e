#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>

#include "muster/v1/job.pb.h"
#include "muster/v1/worker.pb.h"

namespace muster::nodes {

// What a link tells its owner. Called on the link's own threads, never after Close() has returned;
// implementations only post to a queue.
class LinkListener {
 public:
  virtual ~LinkListener() = default;
  // The stream is open and the worker has said hello. Again after each reconnect.
  virtual void OnUp(const std::string& host, const v1::WorkerHello& hello) = 0;
  // The stream broke or could not be opened; the link keeps trying by itself with back-off.
  // NotFound: the machine answers that nobody listens there, so only a worker that is just being
  // started would help.
  virtual void OnLost(const std::string& host, const absl::Status& why) = 0;
  // The host has no worker: it is being pushed there. OnUp or OnLost follows.
  virtual void OnPush(const std::string& /*host*/) {}
  // Observed or ProbeResult. Log chunks do not come here (see LogSink).
  virtual void OnMessage(const std::string& host, v1::AttachResponse message) = 0;
};

// Takes log bytes from links. `ack` may be called from any thread, once the bytes are on disk.
class LogSink {
 public:
  virtual ~LogSink() = default;
  using Ack = std::function<void(const v1::LogAck&)>;
  virtual void OnLog(const std::string& host, v1::LogChunk chunk, Ack ack) = 0;
};

// The controller's side of one node's stream. Any thread.
class NodeLink {
 public:
  virtual ~NodeLink() = default;
  // Begins to connect; returns at once.
  virtual void Start() = 0;
  // Queues a message for the node. Dropped while the link is down: the owner sends the whole wish
  // again on OnUp.
  virtual void Send(v1::AttachRequest message) = 0;
  // Lets the stream end soon, and waits for nothing: Close follows. Hundreds of links that were
  // told so first are closed in the time of one.
  virtual void Stop() {}
  // Ends the stream and waits for the link's threads. The worker and its ranks run on.
  virtual void Close() = 0;
  // For people: "local", "direct 127.0.0.2:7465".
  virtual std::string Describe() const = 0;
};

// How links are made, so that tests can have fake nodes.
class LinkFactory {
 public:
  virtual ~LinkFactory() = default;
  // InvalidArgument when the host's transport is not to be had, with the reason and the fix. Both
  // references outlive the link.
  virtual absl::StatusOr<std::unique_ptr<NodeLink>> Make(const v1::Host& host,
                                                         const std::string& default_transport,
                                                         LinkListener& listener, LogSink& sink) = 0;
};

}  // namespace muster::nodes
