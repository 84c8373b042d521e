#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace muster::tools {

// Work of several threads, results in the order of the input, a bounded number of items in memory.
// `read` and `write` are each called on one thread, `work` on each worker's own; the first
// exception of any (in the order of the input) is rethrown by Run after every thread has ended.
template <typename In, typename Out>
class OrderedPool {
 public:
  using Read = std::function<bool(In& item)>;       // false: no more
  using Work = std::function<Out(const In& item)>;  // one for each worker
  using Write = std::function<void(Out result)>;

  // Items in flight for each worker: enough that none waits for a slow neighbour.
  static constexpr size_t kItemsPerWorker = 3;

  static void Run(const Read& read, const std::vector<Work>& workers, const Write& write) {
    OrderedPool pool(workers.size() * kItemsPerWorker);
    std::vector<std::thread> threads;
    threads.emplace_back([&] { pool.ReadAll(read); });
    for (const Work& work : workers) threads.emplace_back([&] { pool.WorkAll(work); });
    std::exception_ptr error;
    try {
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
    bool done = false;
    std::exception_ptr error;
  };

  explicit OrderedPool(size_t limit) : limit_(limit) {}

  void ReadAll(const Read& read) {
    while (true) {
      auto item = std::make_shared<Item>();
      bool more = false;
      try {
        more = read(item->in);
      } catch (...) {  // takes its place in the order
        item->error = std::current_exception();
        item->done = true;
      }
      std::unique_lock lock(mutex_);
      space_.wait(lock, [this] { return stopped_ || in_order_.size() < limit_; });
      if (stopped_) return;
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
      space_.notify_one();
      if (item->error) std::rethrow_exception(item->error);
      write(std::move(item->out));
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
  std::mutex mutex_;  // guards all below
  std::condition_variable space_;
  std::condition_variable work_;
  std::condition_variable done_;
  std::deque<std::shared_ptr<Item>> in_order_;
  std::deque<std::shared_ptr<Item>> to_do_;
  bool read_all_ = false;
  bool stopped_ = false;
};

}  // namespace muster::tools
