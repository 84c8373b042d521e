#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "controller/nodes/connection.h"
#include "controller/nodes/link_factory.h"
#include "controller/nodes/node_link.h"
#include "controller/nodes/session.h"
#include "controller/nodes/stop_signal.h"

namespace muster::nodes {

// A link of any transport: dials, speaks, and after a break dials again, on a thread of its own.
// Only how the connection is made differs.
class StreamLink : public NodeLink {
 public:
  // Makes a connection; called on the link's thread, returns soon after `stop` is set. The error is
  // for people.
  using Dialer = std::function<absl::StatusOr<Connection>(const StopSignal& stop)>;

  // `place` begins every reason of OnLost: "127.0.0.3:7465".
  StreamLink(std::string host, std::string description, std::string place, LinkOptions options,
             Dialer dialer, LinkListener& listener, LogSink& sink);
  ~StreamLink() override { Close(); }

  void Start() override;
  void Send(v1::AttachRequest message) override;
  void Stop() override;
  void Close() override;
  std::string Describe() const override { return description_; }

 private:
  void Run();
  // One connection, from dialling to its end. `up`: the worker said hello.
  absl::Status Connect(bool& up);

  const std::string host_;
  const std::string description_;
  const std::string place_;
  const LinkOptions options_;
  const Dialer dialer_;
  LinkListener& listener_;
  LogSink& sink_;

  StopSignal stop_;
  absl::Mutex mutex_;
  std::shared_ptr<Session> session_ ABSL_GUARDED_BY(mutex_);  // while connected
  std::thread thread_;                                        // owner's thread only
};

}  // namespace muster::nodes
