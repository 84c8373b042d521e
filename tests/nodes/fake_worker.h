#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/unique_fd.h"
#include "common/unix_socket.h"
#include "common/version.h"
#include "muster/v1/worker.grpc.pb.h"

namespace muster::nodes {

// What the in-test worker does on a stream. Defaults: answers the hello, keeps what it hears.
struct WorkerScript {
  uint32_t protocol = kProtocol;
  bool say_hello = true;
  bool read = true;                             // false: never takes a message after the hello
  grpc::Status refuse;                          // not OK: ends every stream with it
  std::vector<v1::AttachResponse> after_hello;  // sent at once
};

// A Worker service in this process, over connections that come from a listener of its own, as in
// musterd. Any thread.
class FakeWorker {
 public:
  // Listens on 127.0.0.1 (a free port, or `port`), or at `unix_path` if that is not empty.
  explicit FakeWorker(WorkerScript script, uint32_t port = 0, const std::string& unix_path = "")
      : service_(std::move(script)) {
    listener_ = unix_path.empty() ? ListenTcp(port) : *ListenUnix(unix_path);
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
    server_ = builder.BuildAndStart();
    thread_ = std::thread([this] { Accept(); });
  }
  ~FakeWorker() {
    stop_ = true;
    thread_.join();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  uint32_t port() const { return port_; }
  // Waits until so many messages other than hellos have come; false after ten seconds.
  bool WaitForMessages(size_t count) { return service_.WaitForMessages(count); }
  std::vector<v1::AttachRequest> Messages() { return service_.Messages(); }
  int connections() const { return connections_; }

 private:
  class Stream : public grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse> {
   public:
    Stream(const WorkerScript& script, std::function<void(v1::AttachRequest)> heard)
        : script_(script), heard_(std::move(heard)) {
      if (!script_.refuse.ok()) {
        finished_ = true;
        Finish(script_.refuse);
        return;
      }
      StartRead(&request_);
    }
    void OnReadDone(bool ok) override {
      absl::MutexLock lock(&mutex_);
      if (!ok) {
        FinishOnce();
        return;
      }
      if (request_.has_hello()) {
        SayHello();
      } else {
        heard_(request_);
      }
      if (script_.read) StartRead(&request_);
    }
    void OnWriteDone(bool ok) override {
      absl::MutexLock lock(&mutex_);
      queue_.pop_front();
      if (ok && !queue_.empty()) StartWrite(&queue_.front());
      if (queue_.empty() && finish_due_) FinishOnce();
    }
    void OnCancel() override {
      absl::MutexLock lock(&mutex_);
      FinishOnce();
    }
    void OnDone() override { delete this; }

   private:
    void SayHello() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      if (!script_.say_hello) return;
      v1::AttachResponse hello;
      hello.mutable_hello()->set_protocol(script_.protocol);
      hello.mutable_hello()->set_version("9.9");
      hello.mutable_hello()->set_node_name("fake");
      queue_.push_back(std::move(hello));
      for (const v1::AttachResponse& message : script_.after_hello) queue_.push_back(message);
      StartWrite(&queue_.front());
    }
    void FinishOnce() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      if (finished_) return;
      if (!queue_.empty()) {
        finish_due_ = true;
        return;
      }
      finished_ = true;
      Finish(grpc::Status::OK);
    }

    const WorkerScript& script_;
    const std::function<void(v1::AttachRequest)> heard_;
    v1::AttachRequest request_;
    absl::Mutex mutex_;
    std::deque<v1::AttachResponse> queue_ ABSL_GUARDED_BY(mutex_);
    bool finish_due_ ABSL_GUARDED_BY(mutex_) = false;
    bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  };

  class Service : public v1::Worker::CallbackService {
   public:
    explicit Service(WorkerScript script) : script_(std::move(script)) {}
    grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>* Attach(
        grpc::CallbackServerContext* /*context*/) override {
      return new Stream(script_, [this](v1::AttachRequest message) {
        absl::MutexLock lock(&mutex_);
        messages_.push_back(std::move(message));
      });
    }
    bool WaitForMessages(size_t count) {
      absl::MutexLock lock(&mutex_);
      const auto reached = [&] {
        mutex_.AssertHeld();
        return messages_.size() >= count;
      };
      return mutex_.AwaitWithTimeout(absl::Condition(&reached), absl::Seconds(10));
    }
    std::vector<v1::AttachRequest> Messages() {
      absl::MutexLock lock(&mutex_);
      return messages_;
    }

   private:
    const WorkerScript script_;
    absl::Mutex mutex_;
    std::vector<v1::AttachRequest> messages_ ABSL_GUARDED_BY(mutex_);
  };

  UniqueFd ListenTcp(uint32_t port) {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(fd.get(), 16) != 0 ||
        getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      abort();
    }
    port_ = ntohs(address.sin_port);
    return fd;
  }

  void Accept() {
    while (!stop_) {
      pollfd poll_fd{.fd = listener_.get(), .events = POLLIN, .revents = 0};
      if (poll(&poll_fd, 1, 20) <= 0) continue;
      const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) continue;
      ++connections_;
      grpc::AddInsecureChannelFromFd(server_.get(), fd);
    }
  }

  Service service_;
  uint32_t port_ = 0;
  UniqueFd listener_;
  std::unique_ptr<grpc::Server> server_;
  std::atomic<bool> stop_{false};
  std::atomic<int> connections_{0};
  std::thread thread_;
};

}  // namespace muster::nodes
