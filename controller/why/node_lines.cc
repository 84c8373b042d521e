#include "controller/why/node_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/engine/text.h"

namespace muster::why {
namespace {

uint32_t RanksOn(const v1::Job& job, const std::string& host) {
  uint32_t ranks = 0;
  for (const v1::NodePlan& node : job.plan().nodes()) {
    if (node.host().host() == host) ranks += node.num_ranks();
  }
  return ranks;
}

// Ranks of `host` that only SIGKILL could end.
uint32_t EscalatedOn(const v1::Job& job, const std::string& host) {
  return static_cast<uint32_t>(
      std::count_if(job.ranks().begin(), job.ranks().end(), [&](const v1::RankView& rank) {
        return rank.host() == host && rank.status().exit().escalated();
      }));
}

std::string Ranks(uint32_t count) {
  return fmt::format("{} rank{}", count, count == 1 ? "" : "s");
}

// Ranks of `host` that were stopped before they ran.
uint32_t UnstartedOn(const v1::Job& job, const std::string& host) {
  return static_cast<uint32_t>(
      std::count_if(job.ranks().begin(), job.ranks().end(), [&](const v1::RankView& rank) {
        return rank.host() == host && (rank.status().state() == v1::RANK_STATE_ABSENT ||
                                       rank.status().state() == v1::RANK_STATE_PREPARED);
      }));
}

// "2 ranks ended", "2 ranks not started", "1 rank ended, 1 not started"
std::string Fate(const v1::Job& job, const std::string& host) {
  const uint32_t all = RanksOn(job, host);
  const uint32_t unstarted = UnstartedOn(job, host);
  if (unstarted == 0) return Ranks(all) + " ended";
  if (unstarted >= all) return Ranks(all) + " not started";
  return fmt::format("{} ended, {} not started", Ranks(all - unstarted), unstarted);
}

std::string Details(const v1::Job& job, const v1::NodeEnd& end) {
  const v1::EndReport& report = end.report();
  std::string out = report.verified() || report.survivors_size() > 0
                        ? fmt::format("{}, {} left", Fate(job, end.host()), report.survivors_size())
                        : Ranks(RanksOn(job, end.host())) + ", nobody could look what is left";
  if (const uint32_t escalated = EscalatedOn(job, end.host()); escalated > 0) {
    out += fmt::format("; {} needed SIGKILL", Ranks(escalated));
  }
  for (const auto& held : report.held()) out += "; NOT free: " + held;
  for (const auto& process : report.survivors()) {
    out += "; still there: " + DescribeProcess(process);
  }
  for (const auto& process : report.swept()) {
    out += "; outlived its rank and was ended: " + DescribeProcess(process);
  }
  for (const std::string& note : report.notes()) out += "; " + note;
  for (const v1::RankView& rank : job.ranks()) {
    if (rank.host() != end.host() || rank.status().lost_bytes() == 0) continue;
    out += fmt::format("; rank {} lost {} bytes of output: {}", rank.plan().rank(),
                       rank.status().lost_bytes(), rank.status().lost_reason());
  }
  return engine::Printable(out);
}

}  // namespace

std::string DescribeProcess(const v1::Survivor& process) {
  std::string out = fmt::format("pid {}", process.pid());
  if (!process.user().empty()) out += " (" + process.user() + ")";
  out += " " + (process.command().empty() ? "?" : process.command());
  if (process.has_rank()) out += fmt::format(" of rank {}", process.rank());
  if (!process.state().empty()) out += ", state " + process.state();
  if (!process.wait_channel().empty() && process.wait_channel() != "0") {
    out += " in " + process.wait_channel();
  }
  return out;
}

std::vector<NodeLine> NodeLines(const v1::Job& job) {
  std::vector<NodeLine> lines;
  for (const v1::NodeEnd& end : job.ends()) {
    const char* const verdict = end.clean()               ? "clean"
                                : end.report().verified() ? "LEFTOVERS"
                                                          : "UNVERIFIED";
    lines.push_back({end.host(), end.clean(), verdict, Details(job, end)});
  }
  return lines;
}

}  // namespace muster::why
