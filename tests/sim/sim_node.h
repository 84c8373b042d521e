#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/v1/worker.pb.h"
#include "tests/engine/fake_node.h"

namespace muster::testing {

// One healthy node as the protocol sees it, without processes: eight devices, every question
// answered well, ranks that end with 0 as soon as they are started. A value: no threads, no I/O.
class SimNode {
 public:
  // `name` also makes its boot id: no two nodes are one machine.
  explicit SimNode(std::string name) : name_(std::move(name)), node_(name_) {}

  v1::WorkerHello Hello() const;
  v1::ProbeResult Answer(const v1::Probe& probe) const;
  // What the node says to a wish, in this order.
  std::vector<v1::AttachResponse> Take(const v1::Desired& wish);
  void Take(const v1::LogAck& ack);
  // Of a new stream, after the hello.
  std::vector<v1::AttachResponse> Reports() const;
  // Ends of log streams that were told and not yet acknowledged.
  size_t unacked() const { return unacked_; }

 private:
  void EndLogs(const v1::Observed& observed, std::vector<v1::AttachResponse>& said);

  const std::string name_;
  FakeNode node_;
  size_t unacked_ = 0;
};

}  // namespace muster::testing
