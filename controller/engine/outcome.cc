#include "controller/engine/outcome.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <string.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "controller/engine/text.h"

namespace muster::engine {
namespace {

constexpr size_t kMaxErrorText = 500;

// Printable, short, on one line.
std::string Clean(const std::string& text) {
  return absl::StrReplaceAll(Printable(Shorten(text, kMaxErrorText)), {{"\n", " "}});
}

// A failure's time on the controller's clock, as an interval.
struct Moment {
  uint32_t rank = 0;
  size_t node = 0;
  int64_t ended_ns = 0;  // node's clock
  uint64_t wait_order = 0;
};

const NodeRun& NodeOf(const JobRun& job, const Moment& moment) {
  return job.nodes[moment.node];
}

// Whether a was surely first: -1, surely second: 1, or undecidable: 0.
int Compare(const JobRun& job, const Moment& a, const Moment& b) {
  if (a.node == b.node)
    return a.wait_order < b.wait_order ? -1 : a.wait_order > b.wait_order ? 1 : 0;
  const NodeRun& node_a = NodeOf(job, a);
  const NodeRun& node_b = NodeOf(job, b);
  if (!node_a.boot_id.empty() && node_a.boot_id == node_b.boot_id) {
    return a.ended_ns < b.ended_ns ? -1 : a.ended_ns > b.ended_ns ? 1 : 0;
  }
  if (!node_a.clock || !node_b.clock) return 0;
  const int64_t gap =
      (a.ended_ns - node_a.clock->offset_ns) - (b.ended_ns - node_b.clock->offset_ns);
  const int64_t doubt = node_a.clock->uncertainty_ns + node_b.clock->uncertainty_ns;
  return gap < -doubt ? -1 : gap > doubt ? 1 : 0;
}

}  // namespace

int32_t CodeOf(v1::Cause cause) {
  switch (cause) {
    case v1::CAUSE_OK:
      return 0;
    case v1::CAUSE_INVALID:
      return 2;
    case v1::CAUSE_PREFLIGHT_FAILED:
      return 120;
    case v1::CAUSE_LAUNCH_FAILED:
      return 121;
    case v1::CAUSE_NODE_LOST:
      return 122;
    case v1::CAUSE_HANG:
      return 123;
    case v1::CAUSE_LEFTOVERS:
      return 124;
    case v1::CAUSE_STOPPED_BY_USER:
      return 130;
    default:
      return 125;
  }
}

v1::Outcome MakeOutcome(v1::Cause cause, const std::string& message, const std::string& host) {
  v1::Outcome outcome;
  outcome.set_cause(cause);
  outcome.set_code(CodeOf(cause));
  outcome.set_message(Printable(message));
  outcome.set_host(host);
  return outcome;
}

std::string SignalName(int32_t signal) {
  const char* const name = sigabbrev_np(signal);
  return name == nullptr ? absl::StrCat("signal ", signal) : absl::StrCat("SIG", name);
}

std::string DescribeExit(const v1::RankStatus& status) {
  const v1::RankExit& exit = status.exit();
  if (exit.shim_lost()) return "was lost with its muster-shim, which somebody killed";
  if (exit.signal() == 0) return absl::StrCat("exited with code ", exit.code());
  std::string text =
      absl::StrCat("was killed by ", SignalName(exit.signal()), " (", exit.signal(), ")");
  if (exit.core_dumped()) text += ", core dumped";
  if (status.state() == v1::RANK_STATE_EXITED) text += "; Muster did not send it";
  return text;
}

bool IsFailure(const v1::RankStatus& status) {
  if (status.state() != v1::RANK_STATE_EXITED) return false;
  const v1::RankExit& exit = status.exit();
  return exit.code() != 0 || exit.signal() != 0 || exit.shim_lost();
}

bool IsClean(const v1::EndReport& end) {
  return end.verified() && end.survivors().empty() && end.held().empty();
}

std::string ErrorText(const std::string& record) {
  const auto json = nlohmann::json::parse(record, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("message")) return "";
  const auto& message = json["message"];
  if (message.is_string()) return Clean(message.get<std::string>());
  if (message.is_object() && message.contains("message") && message["message"].is_string()) {
    return Clean(message["message"].get<std::string>());
  }
  return "";
}

std::optional<Culprit> FindCulprit(const JobRun& job) {
  std::vector<Moment> failures;
  for (const auto& status : job.ranks) {
    if (!IsFailure(status)) continue;
    failures.push_back({status.rank(), job.plan->ranks(static_cast<int>(status.rank())).node(),
                        status.exit().ended_ns(), status.exit().wait_order()});
  }
  if (failures.empty()) return std::nullopt;
  // Possibly first: those that no other one surely precedes. With doubts "precedes" may be no total
  // order, so each is compared with each; failures are few, or ranks of one node, where a quick
  // look suffices.
  std::vector<const Moment*> firsts;
  for (const auto& candidate : failures) {
    const bool preceded = std::any_of(failures.begin(), failures.end(), [&](const Moment& other) {
      return Compare(job, other, candidate) < 0;
    });
    if (!preceded) firsts.push_back(&candidate);
  }
  Culprit culprit;
  culprit.rank = firsts.empty() ? failures.front().rank : firsts.front()->rank;
  for (size_t i = 1; i < firsts.size(); ++i) culprit.undecided.push_back(firsts[i]->rank);
  return culprit;
}

v1::Outcome RankFailedOutcome(const JobRun& job, const Culprit& culprit) {
  const v1::RankStatus& status = job.ranks[culprit.rank];
  const auto host_of = [&](uint32_t rank) {
    return job.nodes[job.plan->ranks(static_cast<int>(rank)).node()].host.host();
  };
  const std::string host = host_of(culprit.rank);
  std::string message =
      absl::StrCat("rank ", culprit.rank, " on ", host, " ", DescribeExit(status));
  if (const auto text = ErrorText(status.exit().error_record()); !text.empty()) {
    absl::StrAppend(&message, "\n", text);
  }
  if (!culprit.undecided.empty()) {
    absl::StrAppend(&message, "\nwhich rank failed first is undecidable between ranks ",
                    culprit.rank);
    for (const uint32_t rank : culprit.undecided) absl::StrAppend(&message, " and ", rank);
    absl::StrAppend(&message, " (within the uncertainty of the nodes' clocks)");
    for (const uint32_t rank : culprit.undecided) {
      absl::StrAppend(&message, "\nrank ", rank, " on ", host_of(rank), " ",
                      DescribeExit(job.ranks[rank]));
    }
  }
  v1::Outcome outcome = MakeOutcome(v1::CAUSE_RANK_FAILED, message, host);
  outcome.set_code(status.exit().code() != 0 ? status.exit().code() : 1);
  outcome.set_rank(culprit.rank);
  outcome.set_signal(status.exit().signal());
  outcome.mutable_undecided()->Add(culprit.undecided.begin(), culprit.undecided.end());
  return outcome;
}

}  // namespace muster::engine
