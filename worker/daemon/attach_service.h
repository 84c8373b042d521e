#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/reactor.h"
#include "muster/v1/worker.grpc.pb.h"
#include "worker/daemon/session.h"

namespace muster::worker {

// gRPC's side of the Worker service: turns a stream's callbacks, which come on gRPC's threads, into
// calls of these handlers on the reactor thread; certificates are made on gRPC's. Any thread.
class AttachService final : public v1::Worker::CallbackService {
 public:
  struct Handlers {
    std::function<void(const std::shared_ptr<Session>&, const v1::AttachRequest&)> message;
    std::function<void(const std::shared_ptr<Session>&)> writable;
    std::function<void(const std::shared_ptr<Session>&)> closed;
  };

  // The reactor must run until after the server has shut down. `tls_dir`: where this daemon keeps
  // its certificates.
  AttachService(Reactor& reactor, std::string tls_dir, Handlers handlers);

  grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>* Attach(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* RequestCertificate(grpc::CallbackServerContext* context,
                                               const v1::RequestCertificateRequest* request,
                                               v1::RequestCertificateResponse* response) override;
  grpc::ServerUnaryReactor* InstallCertificate(grpc::CallbackServerContext* context,
                                               const v1::InstallCertificateRequest* request,
                                               v1::InstallCertificateResponse* response) override;

 private:
  Reactor& reactor_;
  const std::string tls_dir_;
  const Handlers handlers_;
};

}  // namespace muster::worker
