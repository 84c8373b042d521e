#include "controller/logs/file_registry.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/log.h"
#include "common/status.h"
#include "controller/logs/attempt_log.h"
#include "controller/logs/packer.h"
#include "controller/logs/sync.h"

namespace muster::logs {
namespace {

// Complete attempts that can still answer a node which missed the last acknowledgement.
constexpr size_t kKeptComplete = 32;

std::string Key(const v1::AttemptId& id) {
  return id.controller_id() + "/" + id.job_id() + "/" + std::to_string(id.attempt());
}

class FileRegistryImpl : public FileRegistry {
 public:
  explicit FileRegistryImpl(const Options& options)
      : options_(options), thread_([this] { Run(); }) {}

  ~FileRegistryImpl() override {
    {
      absl::MutexLock lock(&mutex_);
      stop_ = true;
    }
    thread_.join();
  }

  absl::Status Open(const AttemptFiles& files) override;
  bool Complete(const v1::AttemptId& id) const override;
  void SetCompleteCallback(std::function<void(const v1::AttemptId&)> callback) override {
    absl::MutexLock lock(&mutex_);
    on_complete_ = std::move(callback);
  }
  void SetErrorCallback(ErrorCallback callback) override {
    absl::MutexLock lock(&mutex_);
    on_error_ = std::move(callback);
  }
  void AbandonNode(const v1::AttemptId& id, const std::string& host) override;
  void OnLog(const std::string& host, v1::LogChunk chunk, Ack ack) override;
  std::shared_ptr<const Growth> Live(const v1::AttemptId& id) const override;

 private:
  using Attempt = std::shared_ptr<AttemptLog>;

  void Run();
  // Waits for work and for the moment to do it; false at the end.
  bool WaitForWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // One round over all attempts.
  void Round();
  void Retire(const Attempt& attempt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Attempt Find(const v1::AttemptId& id) const {
    absl::MutexLock lock(&mutex_);
    const auto found = attempts_.find(Key(id));
    return found == attempts_.end() ? nullptr : found->second;
  }

  const Options options_;
  OpenFiles open_files_{0};
  Packer packer_{[](const absl::Status& status) { log::Warning(std::string(status.message())); }};

  mutable absl::Mutex mutex_;
  std::map<std::string, Attempt> attempts_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> kept_complete_ ABSL_GUARDED_BY(mutex_);  // oldest first
  std::set<std::string> completed_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<Attempt, std::string>> abandoned_ ABSL_GUARDED_BY(mutex_);
  std::function<void(const v1::AttemptId&)> on_complete_ ABSL_GUARDED_BY(mutex_);
  ErrorCallback on_error_ ABSL_GUARDED_BY(mutex_);
  uint64_t unsynced_ ABSL_GUARDED_BY(mutex_) = 0;
  bool work_ ABSL_GUARDED_BY(mutex_) = false;    // there is something to do by the next interval
  bool urgent_ ABSL_GUARDED_BY(mutex_) = false;  // ... or at once
  bool again_ ABSL_GUARDED_BY(mutex_) = false;   // something failed and is tried again
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: it uses all of the above
};

absl::Status FileRegistryImpl::Open(const AttemptFiles& files) {
  const std::string key = Key(files.id);
  {
    absl::MutexLock lock(&mutex_);
    if (attempts_.count(key) > 0 || completed_.count(key) > 0) return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(Attempt attempt, AttemptLog::Open(files, open_files_, packer_));
  absl::MutexLock lock(&mutex_);
  attempts_.emplace(key, std::move(attempt));
  work_ = urgent_ = true;
  return absl::OkStatus();
}

bool FileRegistryImpl::Complete(const v1::AttemptId& id) const {
  absl::MutexLock lock(&mutex_);
  return completed_.count(Key(id)) > 0;
}

std::shared_ptr<const Growth> FileRegistryImpl::Live(const v1::AttemptId& id) const {
  const Attempt attempt = Find(id);
  return attempt ? attempt->growth() : nullptr;
}

void FileRegistryImpl::AbandonNode(const v1::AttemptId& id, const std::string& host) {
  Attempt attempt = Find(id);
  if (!attempt) return;
  absl::MutexLock lock(&mutex_);
  abandoned_.emplace_back(std::move(attempt), host);
  work_ = urgent_ = true;
}

void FileRegistryImpl::OnLog(const std::string& host, v1::LogChunk chunk, Ack ack) {
  const Attempt attempt = Find(chunk.id());
  if (!attempt) return;
  NodeLog* node = attempt->NodeOf(chunk.rank(), host);
  if (node == nullptr) return;
  Outbox out;
  const NodeLog::Taken taken = node->OnChunk(chunk, ack, out);
  ErrorCallback on_error;
  {
    absl::MutexLock lock(&mutex_);
    work_ = true;
    unsynced_ += taken.bytes;
    urgent_ = urgent_ || taken.ended || unsynced_ >= options_.sync_bytes;
    if (!out.reports.empty()) on_error = on_error_;
  }
  out.Deliver(attempt->id(), on_error);
}

bool FileRegistryImpl::WaitForWork() {
  const auto has_work = [this] {
    mutex_.AssertHeld();
    return work_ || stop_;
  };
  const auto is_urgent = [this] {
    mutex_.AssertHeld();
    return urgent_ || stop_;
  };
  mutex_.AwaitWithTimeout(
      absl::Condition(&has_work),
      again_ ? absl::FromChrono(options_.retry_interval) : absl::InfiniteDuration());
  mutex_.AwaitWithTimeout(absl::Condition(&is_urgent), absl::FromChrono(options_.sync_interval));
  return !stop_;
}

void FileRegistryImpl::Run() {
  bool more = true;
  while (more) {
    {
      absl::MutexLock lock(&mutex_);
      more = WaitForWork();
      work_ = urgent_ = again_ = false;
      unsynced_ = 0;
    }
    Round();  // at the end once more: what was received becomes durable
  }
}

void FileRegistryImpl::Round() {
  std::vector<Attempt> attempts;
  std::vector<std::pair<Attempt, std::string>> abandoned;
  std::function<void(const v1::AttemptId&)> on_complete;
  ErrorCallback on_error;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [key, attempt] : attempts_) attempts.push_back(attempt);
    abandoned.swap(abandoned_);
    on_complete = on_complete_;
    on_error = on_error_;
  }
  for (const auto& [attempt, host] : abandoned) {
    const absl::Status status = attempt->Abandon(host);
    if (!status.ok() && on_error) on_error(attempt->id(), status);
  }
  std::vector<Outbox> outboxes(attempts.size());
  std::vector<SyncJob*> jobs;
  for (size_t i = 0; i < attempts.size(); ++i) {
    attempts[i]->Begin(outboxes[i]);
    for (SyncJob* job : attempts[i]->Jobs()) jobs.push_back(job);
  }
  SyncAll(jobs);
  bool again = false;
  for (size_t i = 0; i < attempts.size(); ++i) {
    AttemptLog& attempt = *attempts[i];
    const auto now = std::chrono::steady_clock::now();
    again = attempt.Conclude(now, options_.retry_interval, outboxes[i]) || again;
    const bool complete = attempt.CheckComplete(outboxes[i]);
    if (complete) {
      absl::MutexLock lock(&mutex_);
      Retire(attempts[i]);
    }
    outboxes[i].Deliver(attempt.id(), on_error);
    if (complete && on_complete) on_complete(attempt.id());
  }
  absl::MutexLock lock(&mutex_);
  again_ = again;
}

void FileRegistryImpl::Retire(const Attempt& attempt) {
  completed_.insert(Key(attempt->id()));
  kept_complete_.push_back(Key(attempt->id()));
  if (kept_complete_.size() <= kKeptComplete) return;
  attempts_.erase(kept_complete_.front());
  kept_complete_.erase(kept_complete_.begin());
}

}  // namespace

std::unique_ptr<FileRegistry> FileRegistry::Make(const Options& options) {
  return std::make_unique<FileRegistryImpl>(options);
}

}  // namespace muster::logs
