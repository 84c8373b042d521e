#include "tests/sim/sim_workers.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <grpcpp/server_posix.h>
#include <sys/socket.h>

#include <chrono>
#include <deque>
#include <utility>

#include "controller/nodes/link_factory.h"
#include "controller/nodes/stream_link.h"
#include "tests/sim/sim_node.h"

namespace muster::testing {

// Which host a stream is for comes behind '@' in the controller's id, or nowhere: then a stream is
// a host. The service is one for all.
class SimWorkers::Service : public v1::Worker::CallbackService {
 public:
  explicit Service(const Faults& faults) : faults_(faults) {}

  grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>* Attach(
      grpc::CallbackServerContext* /*context*/) override {
    return new Stream(*this);
  }

  std::map<std::string, int> hellos() const {
    absl::MutexLock lock(&mutex_);
    return hellos_;
  }
  std::map<std::string, int> probes() const {
    absl::MutexLock lock(&mutex_);
    return probes_;
  }

 private:
  class Stream : public grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse> {
   public:
    explicit Stream(Service& service) : service_(service) { StartRead(&request_); }

    void OnReadDone(bool ok) override {
      absl::MutexLock lock(&mutex_);
      if (!ok) {
        FinishWhenIdle();
        return;
      }
      Take(request_);
      StartRead(&request_);
    }
    void OnWriteDone(bool ok) override {
      absl::MutexLock lock(&mutex_);
      queue_.pop_front();
      if (ok && !queue_.empty()) StartWrite(&queue_.front());
      if (!ok) queue_.clear();
      if (queue_.empty() && ending_) FinishWhenIdle();
    }
    void OnCancel() override {
      absl::MutexLock lock(&mutex_);
      FinishWhenIdle();
    }
    void OnDone() override { delete this; }

   private:
    void Take(const v1::AttachRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      v1::AttachResponse answer;
      if (request.has_hello()) {
        node_ = &service_.NodeOf(request.hello().controller_id(), host_);
        service_.Count(service_.hellos_, host_);
        *answer.mutable_hello() = node_->Hello();
        Say(std::move(answer));
        for (auto& report : node_->Reports()) Say(std::move(report));
      } else if (node_ != nullptr && request.has_probe()) {
        service_.Count(service_.probes_, host_);
        if (service_.faults_.stalled.contains(host_)) return;
        *answer.mutable_probe_result() = node_->Answer(request.probe());
        Say(std::move(answer));
      } else if (node_ != nullptr && request.has_desired()) {
        for (auto& message : node_->Take(request.desired())) Say(std::move(message));
      } else if (node_ != nullptr && request.has_log_ack()) {
        node_->Take(request.log_ack());
      }
    }
    void Say(v1::AttachResponse message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      queue_.push_back(std::move(message));
      if (queue_.size() == 1) StartWrite(&queue_.front());
    }
    void FinishWhenIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      ending_ = true;
      if (!queue_.empty() || std::exchange(finished_, true)) return;
      Finish(grpc::Status::OK);
    }

    Service& service_;
    v1::AttachRequest request_;  // gRPC's while a read is pending
    absl::Mutex mutex_;
    std::string host_ ABSL_GUARDED_BY(mutex_);
    SimNode* node_ ABSL_GUARDED_BY(mutex_) = nullptr;  // from the hello on; no other stream's
    std::deque<v1::AttachResponse> queue_ ABSL_GUARDED_BY(mutex_);
    bool ending_ ABSL_GUARDED_BY(mutex_) = false;
    bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  };

  void Count(std::map<std::string, int>& counts, const std::string& host) {
    absl::MutexLock lock(&mutex_);
    ++counts[host];
  }

  // The node of a new stream, and its name. A node has one stream at a time, so what it does is
  // under that stream's lock.
  SimNode& NodeOf(const std::string& controller_id, std::string& host) {
    absl::MutexLock lock(&mutex_);
    const size_t at = controller_id.find('@');
    host =
        at == std::string::npos ? absl::StrCat("sim", nodes_.size()) : controller_id.substr(at + 1);
    return nodes_.try_emplace(host, host).first->second;
  }

  const Faults& faults_;
  mutable absl::Mutex mutex_;
  std::map<std::string, SimNode> nodes_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> hellos_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> probes_ ABSL_GUARDED_BY(mutex_);
};

class SimWorkers::Factory : public nodes::LinkFactory {
 public:
  Factory(SimWorkers& workers, std::string controller_id)
      : workers_(workers), controller_id_(std::move(controller_id)) {}

  absl::StatusOr<std::unique_ptr<nodes::NodeLink>> Make(const v1::Host& host,
                                                        const std::string& /*transport*/,
                                                        nodes::LinkListener& listener,
                                                        nodes::LogSink& sink) override {
    nodes::LinkOptions options;
    options.controller_id = absl::StrCat(controller_id_, "@", host.host());
    const bool dead = workers_.faults_.dead.contains(host.host());
    auto dial = [this, dead](const nodes::StopSignal& stop) { return Dial(dead, stop); };
    return std::make_unique<nodes::StreamLink>(host.host(), "sim " + host.host(), host.host(),
                                               options, std::move(dial), listener, sink);
  }

 private:
  absl::StatusOr<nodes::Connection> Dial(bool dead, const nodes::StopSignal& stop) {
    if (dead) {  // as a host without power: packets vanish
      stop.WaitFor(std::chrono::seconds(60));
      return absl::DeadlineExceededError("no answer");
    }
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
      return absl::UnavailableError("socketpair");
    grpc::AddInsecureChannelFromFd(workers_.server_.get(), fds[1]);
    nodes::Connection connection;
    connection.fd.reset(fds[0]);
    return connection;
  }

  SimWorkers& workers_;
  const std::string controller_id_;
};

SimWorkers::SimWorkers(Faults faults, const std::vector<std::string>& sockets)
    : faults_(std::move(faults)), service_(std::make_unique<Service>(faults_)) {
  grpc::ServerBuilder builder;
  builder.RegisterService(service_.get());
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  for (const std::string& socket : sockets)
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  server_ = builder.BuildAndStart();
}

SimWorkers::~SimWorkers() {
  server_->Shutdown(std::chrono::system_clock::now());
}

std::unique_ptr<nodes::LinkFactory> SimWorkers::MakeLinks(const std::string& controller_id) {
  return std::make_unique<Factory>(*this, controller_id);
}

std::map<std::string, int> SimWorkers::Hellos() const {
  return service_->hellos();
}

std::map<std::string, int> SimWorkers::Probes() const {
  return service_->probes();
}

}  // namespace muster::testing
