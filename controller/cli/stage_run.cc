#include "controller/cli/stage_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <utility>

#include "controller/cli/output.h"

namespace muster::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLineEvery(5);  // where there is no terminal

// Keeps the live line up to date.
class Progress {
 public:
  Progress(int fd, const Style& style) : fd_(fd), style_(style), live_(isatty(fd) == 1) {}

  void Show(const v1::StageResponse& news) {
    const auto now = SteadyClock::now();
    uint64_t fetched = 0;
    for (const auto& host : news.hosts()) fetched += host.status().bytes_fetched();
    if (last_) {
      const std::chrono::duration<double> passed = now - last_->first;
      // A host whose worker was started anew counts from zero again.
      const double moved =
          fetched > last_->second ? static_cast<double>(fetched - last_->second) : 0;
      if (passed.count() > 0) rate_ = 0.7 * rate_ + 0.3 * moved / 1e6 / passed.count();
    }
    last_ = {now, fetched};
    const std::string line = style_.Dim("muster: ") + StageProgressLine(news, rate_);
    if (live_) {
      WriteAll(fd_, "\r" + line + "\x1b[K");
    } else if (!shown_ || now - *shown_ >= kLineEvery) {
      if (shown_) WriteAll(fd_, line + "\n");  // what is over within moments needs no line
      shown_ = now;
    }
  }

  void Clear() {
    if (live_) WriteAll(fd_, "\r\x1b[K");
  }

 private:
  const int fd_;
  const Style style_;
  const bool live_;
  double rate_ = 0;  // MB/s, smoothed
  std::optional<std::pair<SteadyClock::time_point, uint64_t>> last_;
  std::optional<SteadyClock::time_point> shown_;
};

}  // namespace

absl::StatusOr<v1::StageResponse> RunStage(Client& client, const v1::StageRequest& request, int fd,
                                           const Style& style) {
  auto stub = client.Get();
  if (!stub.ok()) return stub.status();
  grpc::ClientContext context;
  const auto reader = (*stub)->Stage(&context, request);
  Progress progress(fd, style);
  v1::StageResponse news;
  std::optional<v1::StageResponse> last;
  while (reader->Read(&news)) {
    if (news.last()) {
      last = news;
    } else {
      progress.Show(news);
    }
    news.Clear();
  }
  progress.Clear();
  if (const grpc::Status status = reader->Finish(); !status.ok()) return FromGrpc(status);
  if (!last) return absl::UnavailableError("the controller ended the transfer without a result");
  return *std::move(last);
}

}  // namespace muster::cli
