#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace muster::facts {

// Asks several things at once, each on a thread of its own, and waits for all of them no longer
// than a deadline. A question that hangs (a dead file system, say) costs its thread and nothing
// else: it is abandoned, so the process that asks must end with _exit(2). One thread.
class Questions {
 public:
  // Writes what was found where it belongs; runs on the thread of Collect.
  using Answer = std::function<void()>;

  // `ask` may touch nothing that ends before the process does. `late` takes the place of its answer
  // if that is not there in time.
  void Ask(std::function<Answer()> ask, Answer late);

  // Waits, then runs the answers in the order of the questions. Once.
  void Collect(std::chrono::steady_clock::time_point deadline);

 private:
  struct Question;
  std::vector<std::shared_ptr<Question>> questions_;
};

}  // namespace muster::facts
