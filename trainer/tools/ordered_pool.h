#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace muster::tools {

// Work of several threads, results in the order of the input, bounded memory. `read` and `write`
// are each called on one thread, `work` on each worker's own (it may take the item apart); the
// first exception of any (in the order of the input) is rethrown by Run after every thread has
// ended.
template <typename In, typename Out>
class OrderedPool {
 public:
  using Read = std::function<bool(In& item)>;  // false: no more
  using Work = std::function<Out(In& item)>;   // one for each worker
  using Write = std::function<void(Out result)>;
  using Weigh = std::function<size_t(const In& item)>;
  using Start = std::function<std::thread(std::function<void()> body)>;

  // Items in flight for each worker: enough that none waits for a slow neighbour.
  static constexpr size_t kItemsPerWorker = 3;

  // Items that were read and are not yet written weigh at most `max_weight` together; one that is
  // heavier alone waits until it is alone. When the system has no more threads, those that it gave
  // do the work; it is an error when it gives fewer than two.
  static void Run(
      const Read& read, const std::vector<Work>& workers, const Write& write, const Weigh& weigh,
      size_t max_weight, const Start& start = [](std::function<void()> body) {
        return std::thread(std::move(body));
      }) {
    OrderedPool pool(workers.size() * kItemsPerWorker, weigh, max_weight);
    std::vector<std::thread> threads;
    threads.reserve(workers.size() + 1);
    std::exception_ptr error;
    try {
      threads.push_back(start([&] { pool.ReadAll(read); }));
      for (const Work& work : workers) {
        try {
          threads.push_back(start([&] { pool.WorkAll(work); }));
        } catch (const std::system_error&) {
          if (threads.size() < 2) throw;
          break;
        }
      }
      pool.WriteAll(write);
    } catch (...) {
      error = std::current_exception();
    }
    pool.Stop();
    for (std::thread& thread : threads) thread.join();
    if (error) std::rethrow_exception(error);
  }

 private:
  struct Item {
    In in;
    Out out;
    size_t weight = 0;
    bool done = false;
    std::exception_ptr error;
  };

  OrderedPool(size_t limit, const Weigh& weigh, size_t max_weight)
      : limit_(limit), weigh_(weigh), max_weight_(max_weight) {}

  bool HasSpace(size_t weight) const {
    return in_flight_ == 0 || (in_flight_ < limit_ && weight_ + weight <= max_weight_);
  }

  void ReadAll(const Read& read) {
    while (true) {
      auto item = std::make_shared<Item>();
      bool more = false;
      try {
        more = read(item->in);
        if (more) item->weight = weigh_(item->in);
      } catch (...) {  // takes its place in the order
        item->error = std::current_exception();
        item->done = true;
      }
      std::unique_lock lock(mutex_);
      space_.wait(lock, [&] { return stopped_ || HasSpace(item->weight); });
      if (stopped_) return;
      ++in_flight_;
      weight_ += item->weight;
      if (!more) {
        if (item->error) in_order_.push_back(item);
        read_all_ = true;
      } else {
        in_order_.push_back(item);
        to_do_.push_back(item);
      }
      lock.unlock();
      work_.notify_all();
      done_.notify_all();
      if (!more) return;
    }
  }

  void WorkAll(const Work& work) {
    while (true) {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [this] { return stopped_ || read_all_ || !to_do_.empty(); });
      if (stopped_ || to_do_.empty()) return;
      const std::shared_ptr<Item> item = std::move(to_do_.front());
      to_do_.pop_front();
      lock.unlock();
      try {
        item->out = work(item->in);
      } catch (...) {
        item->error = std::current_exception();
      }
      item->in = In();
      lock.lock();
      item->done = true;
      lock.unlock();
      done_.notify_all();
    }
  }

  void WriteAll(const Write& write) {
    while (true) {
      std::unique_lock lock(mutex_);
      done_.wait(lock, [this] { return in_order_.empty() ? read_all_ : in_order_.front()->done; });
      if (in_order_.empty()) return;
      const std::shared_ptr<Item> item = std::move(in_order_.front());
      in_order_.pop_front();
      lock.unlock();
      if (item->error) std::rethrow_exception(item->error);
      write(std::move(item->out));
      item->out = Out();
      lock.lock();
      --in_flight_;
      weight_ -= item->weight;
      lock.unlock();
      space_.notify_one();
    }
  }

  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    space_.notify_all();
    work_.notify_all();
  }

  const size_t limit_;
  const Weigh& weigh_;
  const size_t max_weight_;
  std::mutex mutex_;  // guards all below
  std::condition_variable space_;
  std::condition_variable work_;
  std::condition_variable done_;
  std::deque<std::shared_ptr<Item>> in_order_;
  std::deque<std::shared_ptr<Item>> to_do_;
  size_t in_flight_ = 0;  // items read and not yet written
  size_t weight_ = 0;     // of those
  bool read_all_ = false;
  bool stopped_ = false;
};

}  // namespace muster::tools
