#pragma once

#include <functional>
#include <memory>

#include "muster/v1/worker.grpc.pb.h"
#include "worker/daemon/reactor.h"
#include "worker/daemon/session.h"

namespace muster::worker {

// gRPC's side of the Worker service: turns a stream's callbacks, which come on gRPC's threads, into
// calls of these handlers on the reactor thread. Any thread.
class AttachService final : public v1::Worker::CallbackService {
 public:
  struct Handlers {
    std::function<void(const std::shared_ptr<Session>&, const v1::AttachRequest&)> message;
    std::function<void(const std::shared_ptr<Session>&)> writable;
    std::function<void(const std::shared_ptr<Session>&)> closed;
  };

  // The reactor must run until after the server has shut down.
  AttachService(Reactor& reactor, Handlers handlers);

  grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>* Attach(
      grpc::CallbackServerContext* context) override;

 private:
  Reactor& reactor_;
  const Handlers handlers_;
};

}  // namespace muster::worker
