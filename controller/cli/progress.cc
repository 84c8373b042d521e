#include "controller/cli/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/cli/exit_code.h"
#include "controller/cli/text.h"

namespace muster::cli {
namespace {

constexpr std::chrono::milliseconds kSlow{2'000};
constexpr size_t kNamed = 3;

void Wait(const std::string& host, Progress& progress) {
  if (progress.waiting.empty() || progress.waiting.back() != host) progress.waiting.push_back(host);
}

Progress Connecting(const v1::Job& job, const v1::ListNodesResponse& nodes) {
  Progress progress;
  int all = 0;
  int up = 0;
  for (const v1::Node& node : nodes.nodes()) {
    const auto& jobs = node.job_ids();
    if (std::find(jobs.begin(), jobs.end(), job.id()) == jobs.end()) continue;
    ++all;
    if (node.state() == v1::LINK_STATE_UP) {
      ++up;
    } else {
      Wait(node.host(), progress);
      if (progress.trouble.empty()) progress.trouble = node.error();
    }
  }
  if (all == 0) return progress;
  progress.text = up < all ? fmt::format("connecting {}/{} nodes", up, all)
                           : fmt::format("checking {} nodes", all);
  return progress;
}

// Ranks that are at least in `least`.
Progress Ranks(const v1::Job& job, const char* doing, v1::RankState least) {
  Progress progress;
  int there = 0;
  for (const v1::RankView& rank : job.ranks()) {
    if (rank.status().state() >= least) {
      ++there;
    } else {
      Wait(rank.host(), progress);
    }
  }
  progress.text = fmt::format("{} {}/{} ranks", doing, there, job.ranks_size());
  return progress;
}

std::string Line(const Progress& progress, bool with_hosts) {
  if (!progress.trouble.empty()) return progress.text + ": " + EscapeForDisplay(progress.trouble);
  if (!with_hosts || progress.waiting.empty()) return progress.text;
  std::string hosts;
  const size_t named = std::min(kNamed, progress.waiting.size());
  for (size_t i = 0; i < named; ++i) hosts += (i > 0 ? ", " : "") + progress.waiting[i];
  if (named < progress.waiting.size()) {
    hosts += fmt::format(" and {} more", progress.waiting.size() - named);
  }
  return progress.text + ", waiting for " + EscapeForDisplay(hosts);
}

}  // namespace

Progress DescribeProgress(const v1::Job& job, const v1::ListNodesResponse& nodes) {
  switch (job.state()) {
    case v1::JOB_STATE_PLANNING:
    case v1::JOB_STATE_PREFLIGHT:
      return Connecting(job, nodes);
    case v1::JOB_STATE_PREPARING:
      return Ranks(job, "preparing", v1::RANK_STATE_PREPARED);
    case v1::JOB_STATE_STARTING:
      return Ranks(job, "starting", v1::RANK_STATE_RUNNING);
    case v1::JOB_STATE_QUEUED:
      return {};
    default:
      return {.text = "", .waiting = {}, .trouble = "", .over = true};
  }
}

std::optional<std::string> ProgressDisplay::Next(const Progress& progress, TimePoint now) {
  const std::string phase = progress.text.substr(0, progress.text.find(' '));
  if (phase != phase_) {
    phase_ = phase;
    since_ = now;
    pause_ = kSlow;
    due_ = now + kSlow;
  }
  if (!progress.trouble.empty() && progress.trouble != trouble_) due_ = now;
  const bool slow = now - since_ >= kSlow;
  if (!live_ && (phase.empty() || now < due_)) return std::nullopt;
  std::string line = phase.empty() ? "" : Line(progress, slow);
  if (line == shown_) return std::nullopt;
  shown_ = line;
  trouble_ = progress.trouble;
  pause_ *= 2;
  due_ = now + pause_;
  return line;
}

}  // namespace muster::cli
