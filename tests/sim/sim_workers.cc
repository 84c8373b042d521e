#include "tests/sim/sim_workers.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <grpcpp/server_posix.h>
#include <sys/socket.h>

#include <chrono>
#include <deque>
#include <utility>

#include "common/clock.h"
#include "common/version.h"
#include "controller/nodes/link_factory.h"
#include "controller/nodes/stream_link.h"

namespace muster::testing {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

// A healthy node of eight devices, on a machine of its own.
v1::WorkerHello HelloOf(const std::string& host) {
  v1::WorkerHello hello;
  hello.set_protocol(kProtocol);
  hello.set_version(kVersion);
  hello.set_node_name(host);
  hello.set_boot_id("boot-" + host);
  hello.set_net_ns(1);
  hello.set_state_dir("/var/tmp/muster-0/" + host);
  for (uint32_t i = 0; i < 8; ++i) {
    v1::Device& device = *hello.add_devices();
    device.set_index(i);
    device.set_kind("cuda");
    device.set_name("NVIDIA H100 80GB HBM3");
    device.set_memory_total_bytes(80 * kGiB);
  }
  return hello;
}

// All that it was asked works, and every peer was reached.
v1::ProbeResult AnswerOf(const std::string& host, const v1::Probe& probe) {
  v1::ProbeResult result;
  result.set_probe_id(probe.probe_id());
  result.set_received_ns(Clock::Real().RealtimeNs());
  if (!probe.program().empty()) result.set_program_path("/opt/bin/" + probe.program());
  *result.mutable_devices() = HelloOf(host).devices();
  for (const char* path : {"/var/tmp/muster-0", "/dev/shm"}) {
    v1::FolderFact& folder = *result.add_folders();
    folder.set_path(path);
    folder.set_free_bytes(100 * kGiB);
    folder.set_total_bytes(200 * kGiB);
  }
  result.set_memlock_bytes(~uint64_t{0});
  result.set_nofile(1 << 20);
  for (const auto& path : probe.readable()) result.add_files()->set_path(path);
  if (probe.want_port()) result.set_port(29500);
  v1::NetworkResult& network = *result.mutable_network();
  network.set_iface("eth0");
  for (const v1::NetworkPeer& peer : probe.network().connect()) {
    v1::PeerResult& reached = *network.add_connected();
    reached.set_node(peer.node());
    reached.set_address(peer.address());
    reached.set_microseconds(100);
  }
  for (const uint32_t node : probe.network().expect()) network.add_heard(node);
  result.set_realtime_ns(Clock::Real().RealtimeNs());
  return result;
}

}  // namespace

// Which host a stream is for comes behind '@' in the controller's id: the service is one for all.
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
        const std::string& id = request.hello().controller_id();
        host_ = id.substr(id.find('@') + 1);
        service_.Count(service_.hellos_, host_);
        *answer.mutable_hello() = HelloOf(host_);
      } else if (request.has_probe()) {
        service_.Count(service_.probes_, host_);
        if (service_.faults_.stalled.contains(host_)) return;
        *answer.mutable_probe_result() = AnswerOf(host_, request.probe());
      } else {
        return;
      }
      queue_.push_back(std::move(answer));
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
    std::deque<v1::AttachResponse> queue_ ABSL_GUARDED_BY(mutex_);
    bool ending_ ABSL_GUARDED_BY(mutex_) = false;
    bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  };

  void Count(std::map<std::string, int>& counts, const std::string& host) {
    absl::MutexLock lock(&mutex_);
    ++counts[host];
  }

  const Faults& faults_;
  mutable absl::Mutex mutex_;
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

SimWorkers::SimWorkers(Faults faults)
    : faults_(std::move(faults)), service_(std::make_unique<Service>(faults_)) {
  grpc::ServerBuilder builder;
  builder.RegisterService(service_.get());
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
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
