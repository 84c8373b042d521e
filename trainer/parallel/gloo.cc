#include "trainer/parallel/gloo.h"

#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <deque>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "trainer/config/error.h"
#include "trainer/parallel/gloo_address.h"

namespace muster::parallel {
namespace {

// LibTorch's messages carry a C++ stack after the first line.
std::string FirstLine(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

// Gloo would read past the elements of a view.
void RequireContiguous(const at::Tensor& tensor) {
  if (!tensor.is_contiguous()) throw std::invalid_argument("a collective needs contiguous tensors");
}

// Messages of a pair are matched by their order alone.
constexpr int kTag = 0;

c10d::ReduceOp ToC10d(ReduceOp op) {
  return op == ReduceOp::kMax ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM;
}

class Gloo : public Communicator {
 public:
  Gloo(c10::intrusive_ptr<c10d::Store> store, c10::intrusive_ptr<c10d::ProcessGroupGloo> group)
      : store_(std::move(store)), group_(std::move(group)) {}

  int64_t rank() const override { return group_->getRank(); }
  int64_t size() const override { return group_->getSize(); }

  void AllReduce(at::Tensor tensor, ReduceOp op) override {
    RequireContiguous(tensor);
    c10d::AllreduceOptions options;
    options.reduceOp = ToC10d(op);
    Run("all-reduce", [&] {
      std::vector<at::Tensor> tensors = {tensor};
      return group_->allreduce(tensors, options);
    });
  }

  void Broadcast(at::Tensor tensor, int64_t root) override {
    RequireContiguous(tensor);
    c10d::BroadcastOptions options;
    options.rootRank = root;
    Run("broadcast", [&] {
      std::vector<at::Tensor> tensors = {tensor};
      return group_->broadcast(tensors, options);
    });
  }

  void AllGather(at::Tensor output, at::Tensor input) override {
    RequireContiguous(output);
    RequireContiguous(input);
    at::Tensor to = output.view({-1}), from = input.view({-1});  // c10d compares dimensions too
    Run("all-gather", [&] { return group_->_allgather_base(to, from); });
  }

  void ReduceScatter(at::Tensor output, at::Tensor input) override {
    RequireContiguous(output);
    RequireContiguous(input);
    at::Tensor to = output.view({-1}), from = input.view({-1});
    Run("reduce-scatter", [&] { return group_->_reduce_scatter_base(to, from); });
  }

  void Send(at::Tensor tensor, int64_t to) override {
    RequireContiguous(tensor);
    Run("send", [&] { return StartSend(tensor, to); });
  }

  void Receive(at::Tensor tensor, int64_t from) override {
    RequireContiguous(tensor);
    Run("receive", [&] { return StartReceive(tensor, from); });
  }

  void SendReceive(at::Tensor sent, int64_t to, at::Tensor received, int64_t from) override {
    RequireContiguous(sent);
    RequireContiguous(received);
    c10::intrusive_ptr<c10d::Work> sending;
    Run("receive", [&] {
      auto receiving = StartReceive(received, from);
      sending = StartSend(sent, to);
      return receiving;
    });
    Run("send", [&] { return sending; });
  }

  void Post(at::Tensor tensor, int64_t to) override {
    RequireContiguous(tensor);
    Guard("send", [&] { posted_.push_back(StartSend(tensor, to)); });
  }

  void Flush() override {
    for (; !posted_.empty(); posted_.pop_front()) {
      Run("send", [&] { return posted_.front(); });
    }
  }

  void Barrier() override {
    Run("barrier", [&] { return group_->barrier(); });
  }

  void Synchronize() override {}

 private:
  template <class Start>
  void Run(const char* what, Start start) {
    Guard(what, [&] { start()->wait(); });
  }

  // LibTorch's errors become ours.
  template <class Call>
  void Guard(const char* what, Call call) {
    try {
      call();
    } catch (const std::exception& error) {
      throw CommError(fmt::format(
          "{} of rank {} of {} failed: {} (a peer has ended, or did not answer in time)", what,
          rank(), size(), FirstLine(error)));
    }
  }

  c10::intrusive_ptr<c10d::Work> StartSend(const at::Tensor& tensor, int64_t to) {
    std::vector<at::Tensor> tensors = {tensor};
    return group_->send(tensors, static_cast<int>(to), kTag);
  }
  c10::intrusive_ptr<c10d::Work> StartReceive(const at::Tensor& tensor, int64_t from) {
    std::vector<at::Tensor> tensors = {tensor};
    return group_->recv(tensors, static_cast<int>(from), kTag);
  }

  c10::intrusive_ptr<c10d::Store> store_;  // rank 0's server lives as long as the group
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  std::deque<c10::intrusive_ptr<c10d::Work>> posted_;
};

c10::intrusive_ptr<c10d::Store> OpenStore(const GlooOptions& options) {
  const bool server = options.rank == 0 && !options.external_store;
  c10d::TCPStoreOptions store_options;
  store_options.port = static_cast<uint16_t>(options.master_port);
  store_options.isServer = server;
  store_options.numWorkers = static_cast<size_t>(options.world_size);
  store_options.waitWorkers = false;
  store_options.timeout = options.timeout;
  try {
    return c10::make_intrusive<c10d::TCPStore>(options.master_addr, store_options);
  } catch (const std::exception& error) {
    throw CommError(server
                        ? fmt::format("can't serve the rendezvous at port {} of {}: {}; choose "
                                      "another MASTER_PORT or end the process that holds it",
                                      options.master_port, options.master_addr, FirstLine(error))
                        : fmt::format("no rendezvous at MASTER_ADDR {} port {}: {}; is rank 0 "
                                      "running, and can this machine reach it?",
                                      options.master_addr, options.master_port, FirstLine(error)));
  }
}

std::vector<uint8_t> Bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

// See ChooseAddress: every rank learns how the last one reaches the master.
std::string AgreeOnAddress(const GlooOptions& options, c10d::Store& store) {
  const int port = static_cast<int>(options.master_port);
  const auto mine = RouteTo(options.master_addr, port);
  if (!mine) {
    throw CommError(fmt::format("no route to MASTER_ADDR {}", options.master_addr));
  }
  if (options.rank == options.world_size - 1)
    store.set("route", Bytes(mine->local + " " + mine->remote));
  const std::vector<uint8_t> value = store.get("route");
  const std::string text(value.begin(), value.end());
  const size_t blank = text.find(' ');
  return ChooseAddress(*mine, {text.substr(0, blank), text.substr(blank + 1)});
}

// Runs `connect`; LibTorch's errors become ours.
template <class Connect>
void Explain(const GlooOptions& options, Connect connect) {
  try {
    connect();
  } catch (const CommError&) {
    throw;
  } catch (const std::exception& error) {
    throw CommError(fmt::format("rank {} of {} could not connect to its peers at {} port {}: {}",
                                options.rank, options.world_size, options.master_addr,
                                options.master_port, FirstLine(error)));
  }
}

}  // namespace

struct GlooWorld::Impl {
  GlooOptions options;
  c10::intrusive_ptr<c10d::Store> store;
  std::shared_ptr<::gloo::transport::Device> device;
};

GlooWorld::GlooWorld(const GlooOptions& options) : impl_(std::make_unique<Impl>()) {
  impl_->options = options;
  impl_->store =
      c10::make_intrusive<c10d::PrefixStore>("muster/" + options.run_name, OpenStore(options));
  Explain(options, [&] {
    impl_->device = options.interface.empty() ? c10d::ProcessGroupGloo::createDeviceForHostname(
                                                    AgreeOnAddress(options, *impl_->store), false)
                                              : c10d::ProcessGroupGloo::createDeviceForInterface(
                                                    options.interface, false);
  });
}

GlooWorld::~GlooWorld() = default;

std::unique_ptr<Communicator> GlooWorld::Connect(const std::string& name,
                                                 const std::vector<int64_t>& ranks) {
  const GlooOptions& options = impl_->options;
  const auto place = std::find(ranks.begin(), ranks.end(), options.rank) - ranks.begin();
  std::unique_ptr<Communicator> result;
  Explain(options, [&] {
    auto gloo = c10d::ProcessGroupGloo::Options::create(options.timeout);
    gloo->devices.push_back(impl_->device);
    auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<c10d::PrefixStore>(name, impl_->store), static_cast<int>(place),
        static_cast<int>(ranks.size()), gloo);
    result = std::make_unique<Gloo>(impl_->store, std::move(group));
  });
  return result;
}

std::unique_ptr<Communicator> ConnectGloo(const GlooOptions& options) {
  std::vector<int64_t> all(static_cast<size_t>(options.world_size));
  std::iota(all.begin(), all.end(), 0);
  return GlooWorld(options).Connect("world", all);
}

}  // namespace muster::parallel
