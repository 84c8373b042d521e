#include "controller/cli/follow.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

#include "controller/cli/exit_code.h"
#include "controller/cli/log_view.h"
#include "controller/cli/output.h"
#include "controller/cli/progress.h"
#include "controller/cli/text.h"
#include "controller/engine/transitions.h"

namespace muster::cli {
namespace {

constexpr size_t kUsualColumns = 80;
constexpr auto kTick = std::chrono::milliseconds(100);
constexpr auto kLastLogs = std::chrono::seconds(15);  // for the logs of a job that has ended
constexpr auto kProgress = std::chrono::milliseconds(500);
constexpr auto kProgressAnswer = std::chrono::seconds(2);
constexpr auto kDoubleCtrlC = std::chrono::seconds(1);

// A line that wraps could not be drawn over.
std::string OnOneLine(std::string text) {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const size_t columns = known ? size.ws_col : kUsualColumns;
  if (DisplayWidth(text) < columns) return text;
  while (!text.empty() && DisplayWidth(text) + 4 >= columns) {
    do text.pop_back();
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80);
  }
  return text + "...";
}

class Follower {
 public:
  Follower(Client& client, SignalWait& signals, std::string job, uint32_t world,
           const FollowOptions& options)
      : client_(client),
        signals_(signals),
        job_(std::move(job)),
        options_(options),
        view_(world, options.style, [this](std::string_view text) {
          screen_mutex_.AssertHeld();  // whoever feeds the view holds it
          WipeProgress();
          readable_ = readable_ && WriteAll(options_.fd, text);
        }) {}

  absl::StatusOr<Followed> Run() {
    std::thread events([this] { ReadEvents(); });
    std::thread logs([this] { ReadLogs(); });
    std::thread progress([this] { WatchProgress(); });
    Followed result;
    result.end = Wait();
    events_canceller_.Cancel();
    logs_canceller_.Cancel();
    left_.Notify();
    events.join();
    logs.join();
    progress.join();
    {
      absl::MutexLock screen(&screen_mutex_);
      WipeProgress();
      view_.Finish();
    }
    if (result.end == Followed::End::kDetached) return result;
    absl::MutexLock lock(&mutex_);
    if (!final_) return events_status_;
    result.job = *std::move(final_);
    return result;
  }

 private:
  enum class Answer { kStop, kDetach, kGoOn };

  void ReadEvents() {
    uint64_t seen = 0;
    const absl::Status status = ReadStream<v1::WatchResponse>(
        client_, events_canceller_,
        [&](Client::Stub& stub, grpc::ClientContext* context) {
          v1::WatchRequest request;
          request.set_job(job_);
          request.set_after(seen);
          return stub.Watch(context, request);
        },
        [&](v1::WatchResponse response) {
          if (response.has_event()) {
            seen = response.event().sequence();
            ShowEvent(response.event());
          }
          absl::MutexLock lock(&mutex_);
          if (response.has_job()) final_ = std::move(*response.mutable_job());
          return true;
        },
        [this](const absl::Status&) {
          Say("the controller went away; the job goes on, waiting for the controller to come back");
        });
    absl::MutexLock lock(&mutex_);
    events_status_ =
        status.ok() ? absl::InternalError("the controller ended the event stream") : status;
    events_done_ = true;
    signals_.Wake();
  }

  void ReadLogs() {
    const absl::Status status = ReadStream<v1::LogsResponse>(
        client_, logs_canceller_,
        [&](Client::Stub& stub, grpc::ClientContext* context) {
          v1::LogsRequest request;
          request.set_job(job_);
          request.set_follow(true);
          if (options_.only_new) request.set_tail_lines(0);
          return stub.Logs(context, request);
        },
        [&](const v1::LogsResponse& response) {
          absl::MutexLock screen(&screen_mutex_);
          view_.Append(response, LogView::Clock::now());
          return true;
        },
        [](const absl::Status&) {});
    if (!status.ok()) Say("log lines can't be shown any more: " + ErrorText(status));
    absl::MutexLock lock(&mutex_);
    logs_done_ = true;
    signals_.Wake();
  }

  // How far the start of the ranks is, until they run.
  void WatchProgress() {
    ProgressDisplay display(options_.live);
    while (!left_.WaitForNotificationWithTimeout(absl::FromChrono(kProgress))) {
      const std::optional<Progress> progress = AskProgress();
      if (!progress) continue;
      const auto line = display.Next(*progress, std::chrono::steady_clock::now());
      if (line && screen_mutex_.TryLock()) {
        if (asking_) {
          // The question has the last line of the screen.
        } else if (options_.live) {
          DrawProgress(*line);
        } else {
          view_.Message(options_.style.Dim("muster: ") + *line);
        }
        screen_mutex_.Unlock();
      }
      if (progress->over) return;
    }
  }

  // Nothing while the controller does not answer: the event stream says so.
  std::optional<Progress> AskProgress() {
    const auto stub = client_.Get();
    if (!stub.ok()) return std::nullopt;
    grpc::ClientContext job_context;
    grpc::ClientContext nodes_context;
    const auto deadline = std::chrono::system_clock::now() + kProgressAnswer;
    job_context.set_deadline(deadline);
    nodes_context.set_deadline(deadline);
    v1::GetJobRequest request;
    request.set_job(job_);
    v1::GetJobResponse job;
    if (!(*stub)->GetJob(&job_context, request, &job).ok()) return std::nullopt;
    v1::ListNodesResponse nodes;
    if (!(*stub)->ListNodes(&nodes_context, {}, &nodes).ok()) return std::nullopt;
    return DescribeProgress(job.job(), nodes);
  }

  void DrawProgress(const std::string& line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(screen_mutex_) {
    WipeProgress();
    progress_shown_ = !line.empty();
    if (progress_shown_) WriteAll(options_.fd, options_.style.Dim(OnOneLine("muster: " + line)));
  }
  void WipeProgress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(screen_mutex_) {
    if (progress_shown_) WriteAll(options_.fd, "\r\x1b[K");
    progress_shown_ = false;
  }

  // Until both streams have ended, or the user leaves.
  Followed::End Wait() {
    std::optional<std::chrono::steady_clock::time_point> ended;
    while (true) {
      const std::optional<int> signal = signals_.Wait(kTick);
      const auto now = std::chrono::steady_clock::now();
      if (signal == SIGHUP) return Followed::End::kDetached;
      if (signal && OnInterrupt(*signal) == Answer::kDetach) return Followed::End::kDetached;
      // Not when a reader of ours is slow: signals must be heard even then.
      if (screen_mutex_.TryLock()) {
        view_.Tick(now);
        screen_mutex_.Unlock();
      }
      absl::MutexLock lock(&mutex_);
      if (!events_done_) continue;
      if (!ended) ended = now;
      if (logs_done_ || !final_) return Followed::End::kJobEnded;
      if (now - *ended > kLastLogs) {
        TrySay(fmt::format("log lines still come in; muster logs -f {} shows all of them", job_));
        return Followed::End::kJobEnded;
      }
    }
  }

  Answer OnInterrupt(int signal) {
    Answer answer = Answer::kStop;
    if (options_.ask && signal == SIGINT && !stop_asked_) {
      answer = Ask();
    }
    if (answer == Answer::kStop) RequestStop();
    return answer;
  }

  // What the job says goes on above the question; its end answers it.
  Answer Ask() {
    const auto asked = std::chrono::steady_clock::now();
    while (true) {
      DrawQuestion(true);
      if (const std::optional<int> signal = signals_.Wait(kTick)) {
        const bool quick = std::chrono::steady_clock::now() - asked < kDoubleCtrlC;
        DrawQuestion(false);
        if (*signal == SIGHUP) return Answer::kDetach;
        TrySay(quick ? "Ctrl-C again: stop" : "Ctrl-C: stop");
        return Answer::kStop;
      }
      if (HasEnded()) {
        DrawQuestion(false);
        return Answer::kGoOn;
      }
      pollfd input{STDIN_FILENO, POLLIN, 0};
      if (poll(&input, 1, 0) <= 0) continue;
      char line[256];
      const ssize_t got = read(STDIN_FILENO, line, sizeof line);
      const char first = got <= 0 ? 'd' : line[0];
      const std::optional<Answer> answer = first == 'd' || first == 'D'   ? Answer::kDetach
                                           : first == 's' || first == 'S' ? Answer::kStop
                                           : first == '\n' || first == 'g'
                                               ? Answer::kGoOn
                                               : std::optional<Answer>();
      DrawQuestion(false);
      if (answer) return *answer;
    }
  }

  bool HasEnded() {
    absl::MutexLock lock(&mutex_);
    return events_done_;
  }

  // On the last line; lines of the job wipe it, and it is drawn anew below them.
  void DrawQuestion(bool open) {
    if (!screen_mutex_.TryLock()) return;
    if (open && !(asking_ && progress_shown_)) {
      view_.CloseOpen();
      DrawProgress("[s]top the job, [d]etach (it goes on), or watch on; then Enter: ");
    } else if (!open) {
      WipeProgress();
    }
    asking_ = open;
    screen_mutex_.Unlock();
  }

  void RequestStop() {
    v1::StopRequest request;
    request.set_job(job_);
    if (stop_asked_) request.mutable_grace();  // zero: the user has waited long enough
    const auto response =
        client_.Call<v1::StopRequest, v1::StopResponse>(&Client::Stub::Stop, request);
    const std::string said =
        !response.ok() ? "the stop did not get through: " + ErrorText(response.status())
        : stop_asked_  ? "killing the ranks that are left"
                       : "stopping the job; Ctrl-C again to kill without waiting";
    stop_asked_ = true;
    TrySay(said);
  }

  // Not what the summary says again, nor a line a rank of a job that does well.
  static bool Skipped(const v1::JobEvent& event) {
    if (event.kind() == "state" && engine::IsTerminal(event.state())) return true;
    if (event.kind() == "finding" && event.severity() == "error") return true;
    const bool quiet = event.kind() == "end" || event.kind() == "rank";
    return quiet && event.severity() != "error" && event.severity() != "warning";
  }

  void ShowEvent(const v1::JobEvent& event) {
    if (Skipped(event)) return;
    const std::string text = EscapeForDisplay(event.text());
    if (text.empty()) return;
    const Style& style = options_.style;
    Say(event.severity() == "error"     ? style.Red(text)
        : event.severity() == "warning" ? style.Yellow(text)
        : event.kind() == "state"       ? style.Bold(text)
                                        : text);
  }

  void Say(std::string_view text) {
    absl::MutexLock screen(&screen_mutex_);
    view_.Message(options_.style.Dim("muster: ") + std::string(text));
  }

  // Not when a slow reader holds the screen: the caller has signals to listen to.
  void TrySay(std::string_view text) {
    if (!screen_mutex_.TryLock()) return;
    view_.Message(options_.style.Dim("muster: ") + std::string(text));
    screen_mutex_.Unlock();
  }

  Client& client_;
  SignalWait& signals_;  // main thread
  const std::string job_;
  const FollowOptions options_;
  bool stop_asked_ = false;  // main thread
  Canceller events_canceller_;
  Canceller logs_canceller_;
  absl::Notification left_;

  absl::Mutex screen_mutex_;  // may be held while a slow reader makes us wait
  bool readable_ ABSL_GUARDED_BY(screen_mutex_) = true;         // somebody reads what we write
  bool progress_shown_ ABSL_GUARDED_BY(screen_mutex_) = false;  // under the cursor
  bool asking_ ABSL_GUARDED_BY(screen_mutex_) = false;  // the question is what is shown there
  LogView view_ ABSL_GUARDED_BY(screen_mutex_);

  absl::Mutex mutex_;
  std::optional<v1::Job> final_ ABSL_GUARDED_BY(mutex_);
  absl::Status events_status_ ABSL_GUARDED_BY(mutex_);
  bool events_done_ ABSL_GUARDED_BY(mutex_) = false;
  bool logs_done_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::StatusOr<Followed> Follow(Client& client, SignalWait& signals, const std::string& job,
                                uint32_t world, const FollowOptions& options) {
  return Follower(client, signals, job, world, options).Run();
}

}  // namespace muster::cli
