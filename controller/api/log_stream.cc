#include "controller/api/log_stream.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/status.h"
#include "controller/api/line_filter.h"
#include "controller/engine/transitions.h"
#include "controller/logs/growth.h"
#include "controller/logs/reader.h"

namespace muster::api {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A new line is seen at the latest after kIdle (nobody tells us about it), and viewers of a fast
// job look at it no more often than every kBetween.
constexpr milliseconds kIdle{80};
constexpr milliseconds kBetween{20};

class LogStream {
 public:
  LogStream(const v1::LogsRequest& request, Backend& backend, const logs::AttemptLogs& attempts,
            const std::function<bool(v1::LogsResponse)>& send,
            const std::function<bool()>& cancelled)
      : request_(request),
        backend_(backend),
        attempts_(attempts),
        send_(send),
        cancelled_(cancelled) {}

  absl::Status Run();

 private:
  absl::Status WaitForPlan();
  absl::Status LookAtJob();
  // Takes new sizes; true if nothing will come after them.
  absl::StatusOr<bool> Extend();
  absl::Status SendAll();
  absl::Status SendRun(v1::LogsResponse run);
  absl::Status ReadAttempt(uint32_t attempt);
  // The next attempt to read after this one; nothing when there will be none.
  absl::StatusOr<std::optional<uint32_t>> After(uint32_t attempt);
  void WaitForGrowth(uint64_t epoch) const;

  v1::LogsRequest request_;
  Backend& backend_;
  const logs::AttemptLogs& attempts_;
  const std::function<bool(v1::LogsResponse)>& send_;
  const std::function<bool()>& cancelled_;

  v1::Job job_;
  v1::AttemptId id_;
  std::shared_ptr<const logs::Growth> live_;
  std::unique_ptr<logs::Reader> reader_;
  std::optional<LineFilter> filter_;
};

absl::Status LogStream::LookAtJob() {
  // By number once it is known: "last" may become another job.
  MUSTER_ASSIGN_OR_RETURN(job_, backend_.GetJob(job_.id().empty() ? request_.job() : job_.id()));
  return absl::OkStatus();
}

absl::Status LogStream::WaitForPlan() {
  MUSTER_RETURN_IF_ERROR(LookAtJob());
  while (job_.plan().ranks().empty() && request_.follow() && !engine::IsTerminal(job_.state())) {
    if (cancelled_()) return absl::CancelledError("the viewer has gone");
    std::this_thread::sleep_for(kIdle);
    MUSTER_RETURN_IF_ERROR(LookAtJob());
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> LogStream::Extend() {
  // Without follow, what is there is all that is wanted: unfinished lines too.
  if (!request_.follow()) {
    MUSTER_RETURN_IF_ERROR(reader_->ExtendFromFiles(true));
    return true;
  }
  if (!live_) live_ = attempts_.Live(id_);
  if (live_) {
    const bool complete = live_->complete();
    MUSTER_RETURN_IF_ERROR(reader_->Extend(*live_));
    return complete;
  }
  MUSTER_RETURN_IF_ERROR(LookAtJob());
  const bool over = engine::IsTerminal(job_.state()) || id_.attempt() < job_.attempt();
  MUSTER_RETURN_IF_ERROR(reader_->ExtendFromFiles(over));
  return over;
}

absl::Status LogStream::SendRun(v1::LogsResponse run) {
  std::vector<v1::LogsResponse> runs;
  if (filter_) {
    MUSTER_ASSIGN_OR_RETURN(runs, filter_->Matches(run));
  } else {
    runs.push_back(std::move(run));
  }
  for (v1::LogsResponse& one : runs) {
    one.set_attempt(id_.attempt());
    if (!request_.times()) one.clear_times();
    if (!send_(std::move(one))) return absl::CancelledError("the viewer has gone");
  }
  return absl::OkStatus();
}

absl::Status LogStream::SendAll() {
  while (!cancelled_()) {
    MUSTER_ASSIGN_OR_RETURN(std::optional<v1::LogsResponse> run,
                            reader_->Next(steady_clock::now()));
    if (!run) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(SendRun(*std::move(run)));
  }
  return absl::CancelledError("the viewer has gone");
}

void LogStream::WaitForGrowth(uint64_t epoch) const {
  std::this_thread::sleep_for(kBetween);
  if (live_) {
    live_->Wait(epoch, kIdle - kBetween);
  } else {
    std::this_thread::sleep_for(kIdle - kBetween);
  }
}

absl::Status LogStream::ReadAttempt(uint32_t attempt) {
  id_.set_attempt(attempt);
  live_ = nullptr;
  MUSTER_ASSIGN_OR_RETURN(reader_,
                          logs::Reader::Make(job_.output_dir(), attempt, job_.plan(), request_));
  // The files first: just after a restart the log organ does not know their sizes yet, and the tail
  // is counted from them.
  MUSTER_RETURN_IF_ERROR(reader_->ExtendFromFiles(false));
  while (true) {
    const uint64_t epoch = live_ ? live_->epoch() : 0;
    MUSTER_ASSIGN_OR_RETURN(const bool over, Extend());
    MUSTER_RETURN_IF_ERROR(SendAll());
    if (over) return absl::OkStatus();
    WaitForGrowth(epoch);
  }
}

absl::StatusOr<std::optional<uint32_t>> LogStream::After(uint32_t attempt) {
  if (request_.has_attempt()) return std::nullopt;
  MUSTER_RETURN_IF_ERROR(LookAtJob());
  // Between two attempts a job is not over, although the logs of the last one are whole.
  while (request_.follow() && job_.attempt() <= attempt &&
         job_.state() == v1::JOB_STATE_RESTARTING) {
    if (cancelled_()) return absl::CancelledError("the viewer has gone");
    std::this_thread::sleep_for(kIdle);
    MUSTER_RETURN_IF_ERROR(LookAtJob());
  }
  if (job_.attempt() <= attempt) return std::nullopt;
  return attempt + 1;
}

absl::Status LogStream::Run() {
  if (!request_.grep().empty()) {
    MUSTER_ASSIGN_OR_RETURN(filter_, LineFilter::Make(request_.grep()));
  }
  if (request_.has_attempt() && request_.all_attempts()) {
    return absl::InvalidArgumentError("one attempt, or all of them");
  }
  MUSTER_RETURN_IF_ERROR(WaitForPlan());
  if (job_.plan().ranks().empty()) return absl::OkStatus();  // it never came to have logs
  const uint32_t first = request_.has_attempt()    ? request_.attempt()
                         : request_.all_attempts() ? 0
                                                   : job_.attempt();
  if (first > job_.attempt()) {
    return absl::InvalidArgumentError("attempt " + std::to_string(first) + ": job " + job_.id() +
                                      " has attempts 0 to " + std::to_string(job_.attempt()));
  }
  id_.set_controller_id(backend_.Info().controller_id());
  id_.set_job_id(job_.id());
  std::optional<uint32_t> attempt = first;
  while (attempt) {
    MUSTER_RETURN_IF_ERROR(ReadAttempt(*attempt));
    MUSTER_ASSIGN_OR_RETURN(attempt, After(*attempt));
    if (request_.follow()) request_.clear_tail_lines();  // what follows is followed from its begin
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status StreamLogs(const v1::LogsRequest& request, Backend& backend,
                        const logs::AttemptLogs& attempts,
                        const std::function<bool(v1::LogsResponse)>& send,
                        const std::function<bool()>& cancelled) {
  return LogStream(request, backend, attempts, send, cancelled).Run();
}

}  // namespace muster::api
