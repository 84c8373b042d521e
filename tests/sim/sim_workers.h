#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "controller/nodes/node_link.h"
#include "muster/v1/worker.grpc.pb.h"

namespace muster::testing {

// Hundreds of workers in this process: real links, real gRPC streams over socket pairs, hellos and
// answers made up. Any thread.
class SimWorkers {
 public:
  // What is wrong with which hosts.
  struct Faults {
    std::set<std::string> dead = {};     // no connection comes about, and none is refused
    std::set<std::string> stalled = {};  // they say hello, and then nothing
  };
  explicit SimWorkers(Faults faults);
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
