#include "controller/runtime/link_pool.h"

#include <utility>

#include "common/status.h"

namespace muster::runtime {

// On the link's threads.
class LinkPool::Listener : public nodes::LinkListener {
 public:
  Listener(uint64_t number, const Deliver& deliver) : number_(number), deliver_(deliver) {}

  void OnUp(const std::string& host, const v1::WorkerHello& hello) override {
    deliver_(host, number_, engine::LinkUp{host, hello});
  }
  void OnLost(const std::string& host, const absl::Status& why) override {
    deliver_(host, number_, engine::LinkLost{host, why});
  }
  void OnPush(const std::string& host) override {
    deliver_(host, number_, engine::PushBegan{host});
  }
  void OnMessage(const std::string& host, v1::AttachResponse message) override {
    if (message.has_hello()) {  // of a node whose devices were slow to be found
      deliver_(host, number_, engine::LinkUp{host, std::move(*message.mutable_hello())});
    } else if (message.has_observed()) {
      deliver_(host, number_, engine::NodeObserved{host, std::move(*message.mutable_observed())});
    } else if (message.has_probe_result()) {
      deliver_(host, number_,
               engine::ProbeAnswered{host, std::move(*message.mutable_probe_result())});
    } else if (message.has_stage()) {
      deliver_(host, number_, engine::StageReported{host, std::move(*message.mutable_stage())});
    }
  }

 private:
  const uint64_t number_;
  const Deliver& deliver_;
};

LinkPool::LinkPool(nodes::LinkFactory& factory, nodes::LogSink& sink, Deliver deliver)
    : factory_(factory),
      sink_(sink),
      deliver_(std::move(deliver)),
      closer_([this] { CloseRetired(); }) {}

LinkPool::~LinkPool() {
  Close();
}

absl::Status LinkPool::Connect(const v1::Host& host, const std::string& default_transport) {
  Disconnect(host.host());
  Entry entry;
  entry.number = ++last_number_;
  entry.listener = std::make_unique<Listener>(entry.number, deliver_);
  MUSTER_ASSIGN_OR_RETURN(entry.link,
                          factory_.Make(host, default_transport, *entry.listener, sink_));
  nodes::NodeLink& link = *entry.link;
  links_[host.host()] = std::move(entry);
  link.Start();
  return absl::OkStatus();
}

void LinkPool::Disconnect(const std::string& host) {
  const auto it = links_.find(host);
  if (it == links_.end()) return;
  Retire(std::move(it->second));
  links_.erase(it);
}

void LinkPool::Send(const std::string& host, v1::AttachRequest message) {
  const auto it = links_.find(host);
  if (it != links_.end()) it->second.link->Send(std::move(message));
}

bool LinkPool::IsCurrent(const std::string& host, uint64_t number) const {
  const auto it = links_.find(host);
  return it != links_.end() && it->second.number == number;
}

std::string LinkPool::Describe(const std::string& host) const {
  const auto it = links_.find(host);
  return it == links_.end() ? "" : it->second.link->Describe();
}

void LinkPool::Close() {
  for (auto& [host, entry] : links_) Retire(std::move(entry));
  links_.clear();
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  if (closer_.joinable()) closer_.join();
}

void LinkPool::Retire(Entry entry) {
  entry.link->Stop();
  absl::MutexLock lock(&mutex_);
  retired_.push_back(std::move(entry));
}

void LinkPool::CloseRetired() {
  const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return closed_ || !retired_.empty();
  };
  while (true) {
    Entry entry;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&ready));
      if (retired_.empty()) return;
      entry = std::move(retired_.front());
      retired_.pop_front();
    }
    entry.link->Close();
    entry.link.reset();  // before its listener
  }
}

}  // namespace muster::runtime
