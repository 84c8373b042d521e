#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

namespace muster::tokenizer {

// Memory for the work on long texts, shared by the encoders of a program: together they take no
// more than there is, and wait for each other. Any thread.
class WorkMemory {
 public:
  // Work that takes less is not counted: each thread may do so much at any time.
  static constexpr size_t kFree = size_t{1} << 20;

  // `hint`: how to get more, for messages.
  WorkMemory(size_t bytes, std::string hint) : bytes_(bytes), hint_(std::move(hint)) {}

  // Gives back what was taken.
  class Giver {
   public:
    explicit Giver(size_t taken = 0) : taken_(taken) {}
    void operator()(WorkMemory* memory) const;

   private:
    size_t taken_;
  };
  using Hold = std::unique_ptr<WorkMemory, Giver>;

  // Waits until there is memory for work on `size` bytes of text that takes `factor` times as much;
  // who holds some already must not ask. Throws TokenizerError when there never is: "`what` of
  // 3.0 MiB ...".
  Hold Take(size_t size, size_t factor, const char* what);

 private:
  const size_t bytes_;
  const std::string hint_;
  std::mutex mutex_;
  std::condition_variable given_back_;
  size_t taken_ = 0;  // guarded by mutex_
};

}  // namespace muster::tokenizer
