#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller/nodes/node_link.h"
#include "muster/v1/worker.grpc.pb.h"

namespace muster::testing {

// Hundreds of workers in this process: real links, real gRPC streams over socket pairs, nodes
// without processes. Any thread.
class SimWorkers {
 public:
  // What is wrong with which hosts.
  struct Faults {
    std::set<std::string> dead = {};     // no connection comes about, and none is refused
    std::set<std::string> stalled = {};  // they say hello, and then nothing
  };
  // `sockets`: Unix sockets at which controllers of other processes find a worker each.
  explicit SimWorkers(Faults faults, const std::vector<std::string>& sockets = {});
  ~SimWorkers();

  // Links to any host name; the workers outlive it.
  std::unique_ptr<nodes::LinkFactory> MakeLinks(const std::string& controller_id);

  // How often the hosts were greeted and asked; by host.
  std::map<std::string, int> Hellos() const;
  std::map<std::string, int> Probes() const;

 private:
  class Service;
  class Factory;

  const Faults faults_;
  const std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace muster::testing
