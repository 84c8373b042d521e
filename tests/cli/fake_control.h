#pragma once

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "controller/cli/client.h"
#include "muster/v1/control.grpc.pb.h"

namespace muster::cli {

// A controller that says what the test wrote down, on a Unix socket of its own.
class FakeControl : public v1::Control::Service {
 public:
  using WatchFn =
      std::function<grpc::Status(const v1::WatchRequest&, grpc::ServerWriter<v1::WatchResponse>*)>;
  using LogsFn =
      std::function<grpc::Status(const v1::LogsRequest&, grpc::ServerWriter<v1::LogsResponse>*)>;

  FakeControl() {
    static std::atomic<int> next{0};
    address_ = "unix:/tmp/muster-fake-" + std::to_string(getpid()) + "-" + std::to_string(next++);
    server_ = grpc::ServerBuilder()
                  .AddListeningPort(address_, grpc::InsecureServerCredentials())
                  .RegisterService(this)
                  .BuildAndStart();
  }
  ~FakeControl() override { server_->Shutdown(std::chrono::system_clock::now()); }

  Client::Connector connector() {
    return [this]() -> absl::StatusOr<std::shared_ptr<Client::Stub>> {
      ++connections;
      return std::shared_ptr<Client::Stub>(
          v1::Control::NewStub(grpc::CreateChannel(address_, grpc::InsecureChannelCredentials())));
    };
  }

  grpc::Status Watch(grpc::ServerContext*, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::WatchResponse>* writer) override {
    return on_watch(*request, writer);
  }
  grpc::Status Logs(grpc::ServerContext*, const v1::LogsRequest* request,
                    grpc::ServerWriter<v1::LogsResponse>* writer) override {
    return on_logs(*request, writer);
  }
  grpc::Status Stop(grpc::ServerContext*, const v1::StopRequest* request,
                    v1::StopResponse*) override {
    const std::lock_guard lock(mutex);
    stops.push_back(*request);
    return grpc::Status::OK;
  }
  size_t StopCount() {
    const std::lock_guard lock(mutex);
    return stops.size();
  }

  WatchFn on_watch = [](const auto&, auto*) { return grpc::Status::OK; };
  LogsFn on_logs = [](const auto&, auto*) { return grpc::Status::OK; };
  std::atomic<int> connections{0};
  std::mutex mutex;
  std::vector<v1::StopRequest> stops;

 private:
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace muster::cli
