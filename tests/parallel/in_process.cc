#include "tests/parallel/in_process.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/maximum.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "trainer/config/error.h"

namespace muster::testing {

using parallel::ReduceOp;

namespace {

// Far beyond any computation of a test: ranks that wait so long wait for each other.
constexpr std::chrono::seconds kDeadlock{120};

// What the ranks of one group share; guarded by the world's mutex.
struct Hub {
  explicit Hub(size_t size) : given(size) {}

  std::vector<at::Tensor> given, published;  // by rank, of the exchange going on and the last one
  size_t arrived = 0;
  int64_t generation = 0;
  std::map<std::pair<int64_t, int64_t>, std::deque<at::Tensor>> messages;  // by sender, receiver
};

}  // namespace

struct InProcessWorld::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  bool aborted = false;
  std::map<std::string, std::unique_ptr<Hub>> hubs;
};

class InProcessWorld::Rank : public parallel::Communicator {
 public:
  Rank(Shared* shared, Hub* hub, int64_t rank, int64_t size)
      : shared_(*shared), hub_(*hub), rank_(rank), size_(size) {}

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return size_; }

  void AllReduce(at::Tensor tensor, ReduceOp op) override {
    const at::Tensor result = Reduce(Exchange(tensor), op);
    Barrier();  // all have read this rank's tensor
    tensor.copy_(result);
  }
  void Broadcast(at::Tensor tensor, int64_t root) override {
    const at::Tensor source = Exchange(tensor)[static_cast<size_t>(root)];
    if (root != rank_) tensor.copy_(source);
    Barrier();
  }
  void AllGather(at::Tensor output, at::Tensor input) override {
    std::vector<at::Tensor> pieces = Exchange(input);
    for (at::Tensor& piece : pieces) piece = piece.reshape({-1});
    output.view({-1}).copy_(at::cat(pieces));
    Barrier();
  }
  void ReduceScatter(at::Tensor output, at::Tensor input) override {
    std::vector<at::Tensor> slices = Exchange(input);
    for (at::Tensor& slice : slices) {
      slice = slice.reshape({-1}).narrow(0, rank_ * output.numel(), output.numel());
    }
    std::rotate(slices.begin(), slices.begin() + rank_, slices.end());
    output.view({-1}).copy_(Reduce(slices, ReduceOp::kSum));
    Barrier();
  }
  void Send(at::Tensor tensor, int64_t to) override {
    Post(std::move(tensor), to);
    std::unique_lock lock(shared_.mutex);
    Wait(lock, [&] { return hub_.messages[{rank_, to}].empty(); });
  }
  void Receive(at::Tensor tensor, int64_t from) override {
    std::unique_lock lock(shared_.mutex);
    std::deque<at::Tensor>& queue = hub_.messages[{from, rank_}];
    Wait(lock, [&] { return !queue.empty(); });
    const at::Tensor message = std::move(queue.front());
    if (message.scalar_type() != tensor.scalar_type() || message.sizes() != tensor.sizes()) {
      throw std::logic_error("a message of another type or shape than the one that is awaited");
    }
    tensor.copy_(message);
    queue.pop_front();
    shared_.changed.notify_all();
  }
  void SendReceive(at::Tensor sent, int64_t to, at::Tensor received, int64_t from) override {
    Post(std::move(sent), to);
    Receive(std::move(received), from);
    Flush();
  }
  void Post(at::Tensor tensor, int64_t to) override {
    const std::lock_guard lock(shared_.mutex);
    hub_.messages[{rank_, to}].push_back(std::move(tensor));
    shared_.changed.notify_all();
  }
  void Flush() override {
    std::unique_lock lock(shared_.mutex);
    Wait(lock, [&] {
      return std::all_of(hub_.messages.begin(), hub_.messages.end(), [&](const auto& queue) {
        return queue.first.first != rank_ || queue.second.empty();
      });
    });
  }
  void Barrier() override { Exchange({}); }
  void Synchronize() override {}

 private:
  template <class Condition>
  void Wait(std::unique_lock<std::mutex>& lock, Condition condition) {
    const bool in_time =
        shared_.changed.wait_for(lock, kDeadlock, [&] { return shared_.aborted || condition(); });
    if (shared_.aborted) throw CommError("a peer has ended");
    if (!in_time) throw CommError("the ranks wait for each other");
  }

  // Every rank's tensor, once all have called.
  std::vector<at::Tensor> Exchange(at::Tensor mine) {
    std::unique_lock lock(shared_.mutex);
    hub_.given[static_cast<size_t>(rank_)] = std::move(mine);
    const int64_t generation = hub_.generation;
    if (++hub_.arrived == hub_.given.size()) {
      hub_.published = hub_.given;
      hub_.arrived = 0;
      ++hub_.generation;
      shared_.changed.notify_all();
    }
    Wait(lock, [&] { return hub_.generation != generation; });
    return hub_.published;
  }

  static at::Tensor Reduce(const std::vector<at::Tensor>& tensors, ReduceOp op) {
    at::Tensor result = tensors[0].clone();
    for (size_t i = 1; i < tensors.size(); ++i) {
      if (tensors[i].sizes() != result.sizes()) throw std::logic_error("unequal collectives");
      result = op == ReduceOp::kMax ? at::maximum(result, tensors[i]) : result.add_(tensors[i]);
    }
    return result;
  }

  Shared& shared_;
  Hub& hub_;
  const int64_t rank_;
  const int64_t size_;
};

InProcessWorld::InProcessWorld() : shared_(std::make_unique<Shared>()) {}
InProcessWorld::~InProcessWorld() = default;

std::unique_ptr<parallel::Communicator> InProcessWorld::Connect(int64_t rank,
                                                                const std::string& name,
                                                                const std::vector<int64_t>& ranks) {
  const std::lock_guard lock(shared_->mutex);
  std::unique_ptr<Hub>& hub = shared_->hubs[name];
  if (!hub) hub = std::make_unique<Hub>(ranks.size());
  const auto place = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
  return std::make_unique<Rank>(shared_.get(), hub.get(), place,
                                static_cast<int64_t>(ranks.size()));
}

void InProcessWorld::Abort() {
  const std::lock_guard lock(shared_->mutex);
  shared_->aborted = true;
  shared_->changed.notify_all();
}

void RunRanks(const parallel::ParallelSizes& sizes,
              const std::function<void(const parallel::Groups&)>& body, const Wrap& wrap) {
  InProcessWorld world;
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < sizes.world(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(parallel::MakeGroups(sizes, rank,
                                  [&](const std::string& name, const std::vector<int64_t>& ranks) {
                                    auto group = world.Connect(rank, name, ranks);
                                    return wrap ? wrap(rank, std::move(group)) : std::move(group);
                                  }));
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        world.Abort();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace muster::testing
