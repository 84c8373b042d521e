#include "worker/facts/questions.h"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace muster::facts {

struct Questions::Question {
  Answer late;
  std::mutex mutex;
  std::condition_variable answered;
  Answer answer;  // guarded by mutex
};

void Questions::Ask(std::function<Answer()> ask, Answer late) {
  auto question = std::make_shared<Question>();
  question->late = std::move(late);
  questions_.push_back(question);
  const auto run = [question, ask = std::move(ask)] {
    Answer answer = ask();
    const std::lock_guard lock(question->mutex);
    question->answer = std::move(answer);
    question->answered.notify_one();
  };
  try {
    std::thread(run).detach();
  } catch (const std::system_error&) {
    run();  // no threads to be had: one after the other
  }
}

void Questions::Collect(std::chrono::steady_clock::time_point deadline) {
  for (const auto& question : questions_) {
    std::unique_lock lock(question->mutex);
    const bool in_time =
        question->answered.wait_until(lock, deadline, [&] { return question->answer != nullptr; });
    const Answer answer = in_time ? question->answer : question->late;
    lock.unlock();
    answer();
  }
}

}  // namespace muster::facts
