#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "muster/v1/control.grpc.pb.h"

namespace muster::cli {

absl::Status FromGrpc(const grpc::Status& status);

// The connection of one `muster` process to its controller. Any thread.
class Client {
 public:
  using Stub = v1::Control::Stub;
  // Makes a connection or says why not. The one that commands use is ConnectOrStart; tests give
  // their own.
  using Connector = std::function<absl::StatusOr<std::shared_ptr<Stub>>()>;
  explicit Client(Connector connector) : connector_(std::move(connector)) {}

  // Connects unless connected already.
  absl::StatusOr<std::shared_ptr<Stub>> Get();
  // Connects anew, unless another thread has done so since `broken` was got.
  absl::StatusOr<std::shared_ptr<Stub>> Renew(const std::shared_ptr<Stub>& broken);

  // One call with an answer, with a time limit, so that a stuck controller can't hang a command.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request) {
    auto stub = Get();
    if (!stub.ok()) return stub.status();
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCallTimeout);
    Response response;
    const grpc::Status status = ((**stub).*method)(&context, request, &response);
    if (!status.ok()) return FromGrpc(status);
    return response;
  }

 private:
  static constexpr std::chrono::seconds kCallTimeout{60};

  const Connector connector_;
  absl::Mutex mutex_;
  std::shared_ptr<Stub> stub_ ABSL_GUARDED_BY(mutex_);
};

// Lets another thread end a running stream. Any thread.
class Canceller {
 public:
  void Cancel();
  bool cancelled() const;
  // For the reader: the context of its current call, null between calls.
  void Watch(grpc::ClientContext* context);

 private:
  mutable absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

// Reads a stream of the controller to its end, on the calling thread. A controller that goes away
// is waited for and asked again: `open` then continues where it was. `take` returns false to end.
// `lost` is told once for each loss.
template <typename Response>
absl::Status ReadStream(Client& client, Canceller& canceller,
                        const std::function<std::unique_ptr<grpc::ClientReader<Response>>(
                            Client::Stub&, grpc::ClientContext*)>& open,
                        const std::function<bool(Response)>& take,
                        const std::function<void(const absl::Status&)>& lost) {
  auto stub = client.Get();
  while (stub.ok()) {
    absl::Status status;
    {
      grpc::ClientContext context;
      canceller.Watch(&context);
      const auto reader = open(**stub, &context);
      Response response;
      while (reader->Read(&response)) {
        if (!take(std::move(response))) {
          context.TryCancel();
          break;
        }
        response.Clear();
      }
      status = FromGrpc(reader->Finish());
      canceller.Watch(nullptr);
    }
    if (canceller.cancelled() || absl::IsCancelled(status)) return absl::OkStatus();
    if (!absl::IsUnavailable(status)) return status;
    lost(status);
    stub = client.Renew(*stub);
  }
  return stub.status();
}

}  // namespace muster::cli
