#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "common/unique_fd.h"
#include "controller/nodes/node_link.h"
#include "controller/nodes/stop_signal.h"
#include "muster/v1/worker.grpc.pb.h"

namespace muster::nodes {

// One Attach stream over one connection, from the hello to its end. Made and run by the link's
// thread; gRPC's threads deliver messages; Send and Ack come from any thread. Held by shared
// pointers, because an acknowledgement may come after the stream has ended.
class Session : public grpc::ClientBidiReactor<v1::AttachRequest, v1::AttachResponse> {
 public:
  struct Options {
    std::string host;
    std::string controller_id;
    std::chrono::milliseconds hello_timeout;
    size_t max_queued_bytes;
  };
  // Listener and sink outlive Run().
  Session(Options options, LinkListener& listener, LogSink& sink);

  // Speaks on `connection` until the stream ends or `stop` is set; why it ended, never OK. Once.
  // `self` is this object.
  absl::Status Run(UniqueFd connection, const StopSignal& stop,
                   const std::shared_ptr<Session>& self);
  // Whether the worker said hello.
  bool was_up() const;

  // Queues a message. A node that takes nothing until too much is queued is given up: the stream
  // ends.
  void Send(v1::AttachRequest message);
  // Queues an acknowledgement; of each stream only the newest is kept.
  void Ack(const v1::LogAck& ack);
  // Ends the stream soon; `why` is what Run returns.
  void Abort(absl::Status why);

  void OnWriteDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  using StreamKey = std::tuple<std::string, std::string, uint32_t, uint32_t, int>;

  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckHello(const v1::AttachResponse& message) const;
  void Dispatch();

  const Options options_;
  LinkListener& listener_;
  LogSink& sink_;
  std::weak_ptr<Session> self_;  // set by Run, for acknowledgements
  grpc::ClientContext context_;

  v1::AttachResponse incoming_;  // one read at a time

  mutable absl::Mutex mutex_;
  v1::AttachRequest outgoing_ ABSL_GUARDED_BY(mutex_);  // the write under way
  std::deque<v1::AttachRequest> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<StreamKey, v1::LogAck> acks_ ABSL_GUARDED_BY(mutex_);
  bool open_ ABSL_GUARDED_BY(mutex_) = false;     // writes may be started
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;  // ... but one is under way
  bool up_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status why_ ABSL_GUARDED_BY(mutex_);  // set by Abort, else by OnDone
};

}  // namespace muster::nodes
