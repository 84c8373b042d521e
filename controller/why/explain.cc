#include <absl/strings/str_cat.h>

#include <algorithm>

#include "controller/engine/outcome.h"
#include "controller/engine/text.h"
#include "controller/why/error_lines.h"
#include "controller/why/groups.h"
#include "controller/why/hints.h"
#include "controller/why/node_lines.h"
#include "controller/why/why.h"

namespace muster::why {
namespace {

constexpr size_t kMostLines = 12;
constexpr size_t kMaxLine = 400;
constexpr size_t kMostGroups = 6;
constexpr size_t kMostEvidence = 8;
constexpr int32_t kSigkill = 9;

const v1::RankView* FindRank(const v1::Job& job, uint32_t rank) {
  for (const v1::RankView& view : job.ranks()) {
    if (view.status().rank() == rank) return &view;
  }
  return nullptr;
}

const v1::NodeEnd* FindEnd(const v1::Job& job, const std::string& host) {
  for (const v1::NodeEnd& end : job.ends()) {
    if (end.host() == host) return &end;
  }
  return nullptr;
}

std::optional<uint32_t> RankOfPid(const v1::Job& job, const std::string& host, uint32_t pid) {
  for (const v1::RankView& view : job.ranks()) {
    if (pid != 0 && view.host() == host && view.status().pid() == pid) return view.status().rank();
  }
  return std::nullopt;
}

// "127.0.0.2:29500 is in use by pid 812 (python)", and whose that process is.
std::string DescribePort(const v1::Job& job, const std::string& host, const std::string& holder) {
  uint32_t pid = 0;
  if (const size_t at = holder.find("by pid "); at != std::string::npos) {
    pid = static_cast<uint32_t>(
        std::strtoul(holder.c_str() + at + sizeof("by pid ") - 1, nullptr, 10));
  }
  const auto rank = RankOfPid(job, host, pid);
  return engine::Printable(rank ? absl::StrCat(holder, ", which is rank ", *rank, " of this job")
                                : holder);
}

CauseRank MakeCause(const v1::Job& job, const v1::RankView& view, const RankWords& words) {
  const v1::RankStatus& status = view.status();
  CauseRank cause;
  cause.rank = status.rank();
  cause.host = view.host();
  cause.pid = status.pid();
  cause.end = engine::DescribeExit(status);
  for (const auto& holder : status.exit().port_holders()) {
    cause.ports.push_back(DescribePort(job, view.host(), holder));
  }
  const std::string& record = status.exit().error_record();
  if (cause.error = engine::ErrorText(record); !cause.error.empty()) {
    cause.error_source = "its error file";
  } else if (cause.error = engine::Printable(engine::Shorten(words.event_error, kMaxLine));
             !cause.error.empty()) {
    cause.error_source = "its error event";
  } else if (cause.error = ErrorLine(words.tail); !cause.error.empty()) {
    cause.error_source = "its last lines";
  }
  for (std::string& line : CallStack(record, kMostLines)) {
    cause.lines.push_back({true, std::move(line)});
  }
  cause.call_stack = !cause.lines.empty();
  if (cause.call_stack) return cause;
  const size_t skip = words.tail.size() > kMostLines ? words.tail.size() - kMostLines : 0;
  for (size_t i = skip; i < words.tail.size(); ++i) {
    const LogLine& line = words.tail[i];
    cause.lines.push_back({line.err, engine::Printable(engine::Shorten(line.text, kMaxLine))});
  }
  return cause;
}

void AddRanks(const v1::Job& job, const Words& words, Why& why) {
  const std::vector<uint32_t> causes = CauseRanks(job);
  int64_t first_ns = 0;
  std::vector<const v1::RankView*> followed;
  std::vector<const v1::RankView*> others;
  for (const v1::RankView& view : job.ranks()) {
    const bool is_cause =
        std::find(causes.begin(), causes.end(), view.status().rank()) != causes.end();
    if (is_cause) {
      if (view.status().rank() == causes.front()) first_ns = view.ended_ns();
    } else if (!causes.empty() && engine::IsFailure(view.status())) {
      followed.push_back(&view);
    } else {
      others.push_back(&view);
    }
  }
  for (const uint32_t rank : causes) {
    const v1::RankView* const view = FindRank(job, rank);
    const auto said = words.find(rank);
    if (view == nullptr) continue;
    why.causes.push_back(MakeCause(job, *view, said == words.end() ? RankWords() : said->second));
  }
  why.followed = GroupRanks(followed, words, first_ns, kMostGroups);
  why.others = GroupRanks(others, words, 0, kMostGroups);
}

void AddKernel(const v1::Job& job, Why& why) {
  for (const v1::NodeEnd& end : job.ends()) {
    for (const v1::KernelFault& fault : end.report().kernel().faults()) {
      const auto rank = RankOfPid(job, end.host(), fault.pid());
      if (fault.kind() == "segfault" && !rank) continue;  // somebody else's
      why.kernel.push_back(
          {end.host(), fault.realtime_ns(), fault.kind(), engine::Printable(fault.text()), rank});
    }
  }
  std::stable_sort(why.kernel.begin(), why.kernel.end(),
                   [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
  if (why.kernel.size() > kMostEvidence) {
    why.kernel_notes.push_back(absl::StrCat(why.kernel.size() - kMostEvidence,
                                            " earlier lines of the kernels' logs are left out"));
    why.kernel.erase(why.kernel.begin(), why.kernel.end() - static_cast<long>(kMostEvidence));
  }
  std::vector<std::string> told;
  for (const CauseRank& cause : why.causes) {
    const v1::NodeEnd* const end = FindEnd(job, cause.host);
    if (end == nullptr || !end->report().has_kernel()) continue;
    if (std::find(told.begin(), told.end(), cause.host) != told.end()) continue;
    told.push_back(cause.host);
    const v1::KernelLook& look = end->report().kernel();
    if (!look.error().empty()) {
      why.kernel_notes.push_back(
          absl::StrCat("the kernel's log of ", cause.host,
                       " could not be read: ", engine::Printable(look.error())));
      continue;
    }
    const bool oom = std::any_of(look.faults().begin(), look.faults().end(),
                                 [](const auto& fault) { return fault.kind() == "oom"; });
    const v1::RankView* const view = FindRank(job, cause.rank);
    if (view->status().exit().signal() == kSigkill && !oom) {
      why.kernel_notes.push_back(absl::StrCat("no out-of-memory kill in the kernel's log of ",
                                              cause.host, " at that time"));
    } else if (look.faults().empty()) {
      why.kernel_notes.push_back(absl::StrCat("nothing in the kernel's log of ", cause.host,
                                              " at that time (memory, devices, links, disks)"));
    }
  }
}

}  // namespace

std::vector<uint32_t> CauseRanks(const v1::Job& job) {
  if (!job.outcome().has_rank()) return {};
  std::vector<uint32_t> ranks = {job.outcome().rank()};
  ranks.insert(ranks.end(), job.outcome().undecided().begin(), job.outcome().undecided().end());
  return ranks;
}

Why Explain(const v1::Job& job, const Words& words, const RuleSet& rules) {
  Why why;
  why.job = job.id();
  why.name = job.plan().name().empty() ? job.spec().name() : job.plan().name();
  why.attempt = job.attempt();
  why.state = job.state();
  why.cause = job.outcome().cause();
  why.code = job.outcome().code();
  why.message = engine::Printable(job.outcome().message());
  why.output_dir = job.output_dir();
  const int64_t began = job.started_ns() != 0 ? job.started_ns() : job.submitted_ns();
  why.duration_ns = std::max<int64_t>(job.ended_ns() - began, 0);
  why.remarks = rules.errors;
  AddRanks(job, words, why);
  AddKernel(job, why);
  AddHints(rules, words, why);
  why.nodes = NodeLines(job);
  return why;
}

}  // namespace muster::why
