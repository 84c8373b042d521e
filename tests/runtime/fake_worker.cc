#include "tests/runtime/fake_worker.h"

#include <absl/time/clock.h>

#include <deque>
#include <thread>
#include <utility>

#include "common/clock.h"

namespace muster::testing {

// One stream. Its thread opens it, answers what comes, and delivers reports; all state of the node
// is touched under the cluster's lock, and the listener is called without it.
class FakeCluster::Link : public nodes::NodeLink {
 public:
  Link(FakeCluster& cluster, std::string host, nodes::LinkListener& listener, nodes::LogSink& sink)
      : cluster_(cluster), host_(std::move(host)), listener_(listener), sink_(sink) {}
  ~Link() override { Close(); }

  void Start() override {
    thread_ = std::thread([this] { Run(); });
  }
  void Send(v1::AttachRequest message) override {
    absl::MutexLock lock(&cluster_.mutex_);
    if (up_) requests_.push_back(std::move(message));
  }
  void Close() override {
    {
      absl::MutexLock lock(&cluster_.mutex_);
      closed_ = true;
      cluster_.hosts_.at(host_).links.erase(this);
    }
    if (thread_.joinable()) thread_.join();
  }
  std::string Describe() const override { return "fake " + host_; }

  // Under the cluster's lock.
  void Report(v1::Observed observed) {
    v1::AttachResponse message;
    *message.mutable_observed() = std::move(observed);
    reports_.push_back(std::move(message));
  }
  void Break() { broken_ = true; }

 private:
  void Run() {
    while (true) {
      std::function<void()> call;
      {
        absl::MutexLock lock(&cluster_.mutex_);
        if (closed_) return;
        call = NextCall();
      }
      if (call) {
        call();
      } else {
        absl::SleepFor(absl::Milliseconds(1));
      }
    }
  }

  // The next thing to tell the listener, or nothing.
  std::function<void()> NextCall() {
    Host& host = cluster_.hosts_.at(host_);
    if (!up_) return Dial(host);
    if (broken_) return Lose(host, "connection reset by peer");
    if (!requests_.empty()) Serve(host);
    if (reports_.empty()) return nullptr;
    return [this, message = PopReport()] {
      listener_.OnMessage(host_, message);
      SendLogEnds(message.observed());
    };
  }

  std::function<void()> Dial(Host& host) {
    if (host.cut) {
      if (refused_++ % 20 != 0) return nullptr;
      return Lose(host, "connection refused");
    }
    up_ = true;
    broken_ = false;
    host.links.insert(this);
    for (auto& report : host.node.ReportAll()) Report(std::move(report));
    return [this, hello = host.node.Hello()] { listener_.OnUp(host_, hello); };
  }

  std::function<void()> Lose(Host& host, const char* why) {
    up_ = false;
    requests_.clear();
    reports_.clear();
    host.links.erase(this);
    return [this, why] { listener_.OnLost(host_, absl::UnavailableError(why)); };
  }

  void Serve(Host& host) {
    const v1::AttachRequest request = std::move(requests_.front());
    requests_.pop_front();
    if (request.has_desired()) {
      Report(host.node.Apply(request.desired()));
      for (auto& report : host.node.Settle()) Report(std::move(report));
    } else if (request.has_probe()) {
      auto answer = host.node.AnswerUnlessSilent(request.probe());
      if (!answer) return;
      auto& message = reports_.emplace_back();
      *message.mutable_probe_result() = *std::move(answer);
      message.mutable_probe_result()->set_realtime_ns(Clock::Real().RealtimeNs());
    }
  }

  v1::AttachResponse PopReport() {
    v1::AttachResponse message = std::move(reports_.front());
    reports_.pop_front();
    return message;
  }

  void SendLogEnds(const v1::Observed& observed) {
    if (!observed.has_end()) return;
    for (const auto& rank : observed.ranks()) {
      v1::LogChunk chunk;
      *chunk.mutable_id() = observed.id();
      chunk.set_rank(rank.rank());
      chunk.set_stream(v1::STREAM_STDOUT);
      chunk.set_end(true);
      sink_.OnLog(host_, std::move(chunk), [](const v1::LogAck&) {});
    }
  }

  FakeCluster& cluster_;
  const std::string host_;
  nodes::LinkListener& listener_;
  nodes::LogSink& sink_;
  std::thread thread_;
  // Under the cluster's lock.
  std::deque<v1::AttachRequest> requests_;
  std::deque<v1::AttachResponse> reports_;
  bool up_ = false;
  bool broken_ = false;
  bool closed_ = false;
  int refused_ = 0;
};

class FakeCluster::Factory : public nodes::LinkFactory {
 public:
  explicit Factory(FakeCluster& cluster) : cluster_(cluster) {}
  absl::StatusOr<std::unique_ptr<nodes::NodeLink>> Make(const v1::Host& host, const std::string&,
                                                        nodes::LinkListener& listener,
                                                        nodes::LogSink& sink) override {
    absl::MutexLock lock(&cluster_.mutex_);
    if (!cluster_.hosts_.contains(host.host())) {
      return absl::InvalidArgumentError("transport 'fake' does not reach " + host.host());
    }
    return std::make_unique<Link>(cluster_, host.host(), listener, sink);
  }

 private:
  FakeCluster& cluster_;
};

FakeCluster::FakeCluster(const std::vector<std::string>& hosts) {
  for (const auto& host : hosts) hosts_.emplace(host, host);
}

std::unique_ptr<nodes::LinkFactory> FakeCluster::MakeLinks() {
  return std::make_unique<Factory>(*this);
}

void FakeCluster::WithNode(const std::string& host, const std::function<void(FakeNode&)>& use) {
  absl::MutexLock lock(&mutex_);
  use(hosts_.at(host).node);
}

void FakeCluster::ExitRank(const std::string& name, uint32_t rank, int32_t code, int32_t signal) {
  absl::MutexLock lock(&mutex_);
  Host& host = hosts_.at(name);
  for (const auto& [attempt, number] : host.node.Running()) {
    if (number != rank) continue;
    const auto report = host.node.Exit(attempt, rank, code, signal, Clock::Real().RealtimeNs());
    for (Link* link : host.links) link->Report(report);
    for (const auto& settled : host.node.Settle()) {
      for (Link* link : host.links) link->Report(settled);
    }
    return;
  }
}

size_t FakeCluster::Running(const std::string& host) {
  absl::MutexLock lock(&mutex_);
  return hosts_.at(host).node.Running().size();
}

void FakeCluster::Cut(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  hosts_.at(name).cut = true;
  for (Link* link : hosts_.at(name).links) link->Break();
}

void FakeCluster::Heal(const std::string& host) {
  absl::MutexLock lock(&mutex_);
  hosts_.at(host).cut = false;
}

std::string FakeLogRegistry::KeyOf(const v1::AttemptId& id) {
  return id.job_id() + "/" + std::to_string(id.attempt());
}

absl::Status FakeLogRegistry::Open(const logs::AttemptFiles& files) {
  absl::MutexLock lock(&mutex_);
  if (!fail_open_.ok()) return std::exchange(fail_open_, absl::OkStatus());
  attempts_[KeyOf(files.id)].files = files;
  last_ = files;
  return absl::OkStatus();
}

bool FakeLogRegistry::IsComplete(const std::string& key) const {
  const auto it = attempts_.find(key);
  return it != attempts_.end() &&
         it->second.ended.size() == static_cast<size_t>(it->second.files.plan.ranks_size());
}

bool FakeLogRegistry::Complete(const v1::AttemptId& id) const {
  absl::MutexLock lock(&mutex_);
  return IsComplete(KeyOf(id));
}

void FakeLogRegistry::SetCompleteCallback(std::function<void(const v1::AttemptId&)> callback) {
  absl::MutexLock lock(&mutex_);
  callback_ = std::move(callback);
}

void FakeLogRegistry::AbandonNode(const v1::AttemptId& id, const std::string& host) {
  {
    absl::MutexLock lock(&mutex_);
    const auto it = attempts_.find(KeyOf(id));
    if (it == attempts_.end()) return;
    for (const auto& rank : it->second.files.plan.ranks()) {
      const auto& node = it->second.files.plan.nodes(static_cast<int>(rank.node()));
      if (node.host().host() == host) it->second.ended.insert(rank.rank());
    }
  }
  TellIfComplete(id);
}

void FakeLogRegistry::OnLog(const std::string&, v1::LogChunk chunk, Ack) {
  {
    absl::MutexLock lock(&mutex_);
    const auto it = attempts_.find(KeyOf(chunk.id()));
    if (it == attempts_.end()) return;
    if (chunk.end()) it->second.ended.insert(chunk.rank());
  }
  TellIfComplete(chunk.id());
}

void FakeLogRegistry::TellIfComplete(const v1::AttemptId& id) {
  std::function<void(const v1::AttemptId&)> callback;
  {
    absl::MutexLock lock(&mutex_);
    Attempt& attempt = attempts_[KeyOf(id)];
    if (!IsComplete(KeyOf(id)) || std::exchange(attempt.told, true)) return;
    callback = callback_;
  }
  if (callback) callback(id);
}

void FakeLogRegistry::FailOpen(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  fail_open_ = std::move(status);
}

logs::AttemptFiles FakeLogRegistry::last_opened() const {
  absl::MutexLock lock(&mutex_);
  return last_;
}

}  // namespace muster::testing
