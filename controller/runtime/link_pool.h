#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "controller/engine/event.h"
#include "controller/nodes/node_link.h"

namespace muster::runtime {

// The links by host, and their translation into engine events. A link that was replaced or released
// never speaks again: events carry their link's number, and late ones are dropped. Engine thread
// only.
class LinkPool {
 public:
  // A link's event on its way to the engine thread; `IsCurrent(host, number)` must be asked there
  // before it is used.
  using Deliver = std::function<void(const std::string& host, uint64_t number,
                                     decltype(engine::Event::what) what)>;

  // `deliver` is called on links' threads until Close() has returned. Both references outlive the
  // pool.
  LinkPool(nodes::LinkFactory& factory, nodes::LogSink& sink, Deliver deliver);
  ~LinkPool();

  // Makes the link, in place of an older one to this host, and starts it.
  absl::Status Connect(const v1::Host& host, const std::string& default_transport);
  // Ends the link; its threads are waited for elsewhere.
  void Disconnect(const std::string& host);
  void Send(const std::string& host, v1::AttachRequest message);
  bool IsCurrent(const std::string& host, uint64_t number) const;
  // "" for a host without a link.
  std::string Describe(const std::string& host) const;
  // Ends all links and waits for them.
  void Close();

 private:
  class Listener;
  struct Entry {
    uint64_t number = 0;
    std::unique_ptr<Listener> listener;
    std::unique_ptr<nodes::NodeLink> link;
  };
  void Retire(Entry entry);
  void CloseRetired();

  nodes::LinkFactory& factory_;
  nodes::LogSink& sink_;
  const Deliver deliver_;
  std::map<std::string, Entry> links_;
  uint64_t last_number_ = 0;

  absl::Mutex mutex_;
  std::deque<Entry> retired_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread closer_;
};

}  // namespace muster::runtime
