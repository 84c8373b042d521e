#include "controller/cli/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "controller/cli/exit_code.h"
#include "controller/cli/text.h"

namespace muster::cli {
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

std::string DescribeProcess(const v1::Survivor& process) {
  std::string out =
      fmt::format("pid {} {}", process.pid(), process.command().empty() ? "?" : process.command());
  if (process.has_rank()) out += fmt::format(" of rank {}", process.rank());
  if (!process.state().empty()) out += ", state " + process.state();
  if (!process.wait_channel().empty() && process.wait_channel() != "0") {
    out += " in " + process.wait_channel();
  }
  return out;
}

std::string NodeDetails(const v1::Job& job, const v1::NodeEnd& end) {
  const v1::EndReport& report = end.report();
  const std::string ranks = Count(RanksOn(job, end.host()), "rank");
  std::string out = report.verified() || report.survivors_size() > 0
                        ? fmt::format("{} ended, {} left", ranks, report.survivors_size())
                        : ranks + ", nobody could look what is left";
  if (const uint32_t escalated = EscalatedOn(job, end.host()); escalated > 0) {
    out += fmt::format("; {} needed SIGKILL", Count(escalated, "rank"));
  }
  for (const v1::Survivor& process : report.survivors()) {
    out += "; still there: " + DescribeProcess(process);
  }
  for (const v1::Survivor& process : report.swept()) {
    out += "; outlived its rank and was ended: " + DescribeProcess(process);
  }
  for (const std::string& note : report.notes()) out += "; " + note;
  return EscapeForDisplay(out);
}

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(EscapeForDisplay(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::string JobTitle(const v1::Job& job) {
  const std::string& name = job.plan().name().empty() ? job.spec().name() : job.plan().name();
  return name.empty() ? job.id() : fmt::format("{} ({})", job.id(), EscapeForDisplay(name));
}

std::vector<std::string> NodeLines(const v1::Job& job, const Style& style) {
  size_t width = 0;
  for (const v1::NodeEnd& end : job.ends()) width = std::max(width, end.host().size());
  std::vector<std::string> lines;
  for (const v1::NodeEnd& end : job.ends()) {
    const std::string verdict = end.clean()               ? style.Green("clean")
                                : end.report().verified() ? style.Red("LEFTOVERS")
                                                          : style.Red("UNVERIFIED");
    lines.push_back(
        fmt::format("{:<{}}  {}  {}", end.host(), width, verdict, NodeDetails(job, end)));
  }
  return lines;
}

bool AllClean(const v1::Job& job) {
  return std::all_of(job.ends().begin(), job.ends().end(),
                     [](const v1::NodeEnd& end) { return end.clean(); });
}

std::vector<std::string> EndSummary(const v1::Job& job, const Style& style) {
  const v1::Outcome& outcome = job.outcome();
  const int64_t began = job.started_ns() != 0 ? job.started_ns() : job.submitted_ns();
  std::string headline = "job " + JobTitle(job) + " ";
  const std::string state = StateName(job.state());
  headline += job.state() == v1::JOB_STATE_SUCCEEDED ? style.Green(state)
              : job.state() == v1::JOB_STATE_STOPPED ? style.Yellow(state)
                                                     : style.Red(state);
  if (job.ended_ns() > began) headline += " after " + FormatDuration(job.ended_ns() - began);
  std::vector<std::string> message = Lines(outcome.message());
  const bool says_more = job.state() != v1::JOB_STATE_SUCCEEDED && !message.empty();
  if (says_more) headline += ": " + message.front();

  std::vector<std::string> lines = {headline};
  if (says_more) {
    for (size_t i = 1; i < message.size(); ++i) lines.push_back("  " + message[i]);
  }
  for (const std::string& line : NodeLines(job, style)) lines.push_back("  " + line);
  if (!job.output_dir().empty()) lines.push_back("  logs: " + job.output_dir());
  if (outcome.has_rank()) {
    lines.push_back(fmt::format("  see also: muster logs {} --rank {}", job.id(), outcome.rank()));
  }
  return lines;
}

}  // namespace muster::cli
