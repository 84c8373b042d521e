#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller/logs/log_registry.h"
#include "controller/nodes/node_link.h"
#include "tests/engine/fake_node.h"

namespace muster::testing {

// Fake workers by host name, reached over in-process links with a thread each. Nodes outlive links
// and controllers, as real ones do. By default a node does at once what it is told, and its ranks
// run until ExitRank(). Any thread.
class FakeCluster {
 public:
  explicit FakeCluster(const std::vector<std::string>& hosts);

  // Links to these nodes; the cluster outlives it. A host that is none of ours is refused as one
  // without transport.
  std::unique_ptr<nodes::LinkFactory> MakeLinks();

  // Under the cluster's lock.
  void WithNode(const std::string& host, const std::function<void(FakeNode&)>& use);
  // A running rank ends by itself; its node says so over the links it has.
  void ExitRank(const std::string& host, uint32_t rank, int32_t code, int32_t signal = 0);
  size_t Running(const std::string& host);
  // Links to the host break, and can't be opened until Heal().
  void Cut(const std::string& host);
  void Heal(const std::string& host);

 private:
  class Link;
  class Factory;
  struct Host {
    explicit Host(const std::string& name) : node(name) {}
    FakeNode node;
    bool cut = false;
    std::set<Link*> links;  // with an open stream
  };
  absl::Mutex mutex_;
  std::map<std::string, Host> hosts_ ABSL_GUARDED_BY(mutex_);
};

// A log organ without files: an attempt is complete when the end of each rank has been seen, or its
// node was given up. Any thread.
class FakeLogRegistry : public logs::LogRegistry {
 public:
  absl::Status Open(const logs::AttemptFiles& files) override;
  bool Complete(const v1::AttemptId& id) const override;
  void SetCompleteCallback(std::function<void(const v1::AttemptId&)> callback) override;
  void AbandonNode(const v1::AttemptId& id, const std::string& host) override;
  void OnLog(const std::string& host, v1::LogChunk chunk, Ack ack) override;

  // The next Open() fails with this.
  void FailOpen(absl::Status status);
  // The files given to the newest Open().
  logs::AttemptFiles last_opened() const;

 private:
  struct Attempt {
    logs::AttemptFiles files;
    std::set<uint32_t> ended;
    bool told = false;
  };
  static std::string KeyOf(const v1::AttemptId& id);
  bool IsComplete(const std::string& key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellIfComplete(const v1::AttemptId& id);

  mutable absl::Mutex mutex_;
  std::map<std::string, Attempt> attempts_ ABSL_GUARDED_BY(mutex_);
  std::function<void(const v1::AttemptId&)> callback_ ABSL_GUARDED_BY(mutex_);
  absl::Status fail_open_ ABSL_GUARDED_BY(mutex_);
  logs::AttemptFiles last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::testing
