#include "controller/runtime/output_writer.h"

#include <utility>

#include "common/log.h"

namespace muster::runtime {

namespace {

constexpr absl::Duration kRetry = absl::Seconds(2);

}  // namespace

OutputWriter::OutputWriter() : thread_([this] { Run(); }) {}

OutputWriter::~OutputWriter() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  thread_.join();
}

void OutputWriter::Write(std::string path, std::string text, const Owner& owner) {
  Post({std::move(path), std::move(text), {}, owner, false});
}

void OutputWriter::Append(std::string path, std::string text, const Owner& owner) {
  Post({std::move(path), std::move(text), {}, owner, true});
}

void OutputWriter::WriteMade(std::string path, std::function<std::string()> make,
                             const Owner& owner) {
  Post({std::move(path), "", std::move(make), owner, false});
}

void OutputWriter::Post(Job job) {
  absl::MutexLock lock(&mutex_);
  queue_.push_back(std::move(job));
}

void OutputWriter::Run() {
  const auto ready = [this]()
                         ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return closed_ || !queue_.empty(); };
  while (true) {
    std::deque<Job> jobs;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.AwaitWithTimeout(absl::Condition(&ready),
                              unwritten_.empty() ? absl::InfiniteDuration() : kRetry);
      if (closed_ && queue_.empty()) return;
      jobs.swap(queue_);
    }
    for (auto& [path, job] : std::exchange(unwritten_, {})) jobs.push_front(std::move(job));
    for (size_t i = 0; i < jobs.size(); ++i) {
      Job& job = jobs[i];
      std::string text = job.make ? job.make() : job.text;
      // Hundreds of ranks that end together are hundreds of lines for one file.
      while (job.append && i + 1 < jobs.size() && jobs[i + 1].append &&
             jobs[i + 1].path == job.path) {
        text += jobs[++i].text;
      }
      const auto status = job.append ? AppendOutput(job.path, text, job.owner)
                                     : WriteOutput(job.path, text, job.owner);
      if (status.ok()) {
        unwritten_.erase(job.path);
        continue;
      }
      if (!job.failed) log::Warning(std::string(status.message()));
      job.failed = true;
      if (!job.append) unwritten_[job.path] = std::move(job);
    }
  }
}

}  // namespace muster::runtime
