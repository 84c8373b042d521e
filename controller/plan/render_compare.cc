#include <fmt/format.h>

#include <algorithm>

#include "controller/plan/render.h"
#include "controller/plan/text_table.h"

namespace muster::plan {
namespace {

Row RowOf(const LayoutRow& row) {
  const Sizes& s = row.sizes;
  Row out = {row.current ? ">" : "",
             std::to_string(s.tp),
             std::to_string(s.pp),
             std::to_string(s.cp),
             std::to_string(s.vp),
             std::to_string(s.dp),
             s.num_microbatches > 0 ? std::to_string(s.num_microbatches) : "-",
             s.num_microbatches > 0 ? fmt::format("{:.1f}", 100 * row.bubble) : "-",
             row.memory ? GiB(*row.memory) + (row.too_large ? "!" : " ") : "-"};
  if (!row.performance) {
    out.insert(out.end(), {"-", "-", "-", "-"});
    return out;
  }
  const Performance& p = *row.performance;
  out.push_back(GiB(p.volume.Total()));
  out.push_back(GiB(p.volume.between_hosts));
  out.push_back(fmt::format("{:.0f}", p.tokens_per_second));
  out.push_back(fmt::format("{:.0f}", p.tokens_per_second_per_rank));
  return out;
}

}  // namespace

std::string RenderComparison(const v1::Plan& plan, const Forecast& forecast,
                             const std::vector<LayoutRow>& rows, const Constants& constants,
                             size_t top) {
  const size_t shown = top == 0 ? rows.size() : std::min(top, rows.size());
  const auto fits = static_cast<size_t>(
      std::count_if(rows.begin(), rows.end(), [](const LayoutRow& row) { return !row.too_large; }));
  std::string out = fmt::format("{} layouts of {} ranks", rows.size(), plan.world());
  if (plan.global_batch() > 0) {
    out += fmt::format(" with GBS {} and MBS {}", plan.global_batch(), plan.micro_batch());
  }
  if (forecast.device && !forecast.memory.empty()) {
    out += fmt::format("; {} fit in {} GiB ({})", fits, GiB(forecast.device->bytes),
                       forecast.device->source);
  }
  out += "\n\n";
  std::vector<Row> table = {{"", "TP", "PP", "CP", "VP", "DP", "numbs", "bubble %", "GiB ",
                             "sends GiB", "between hosts", "tokens/s", "a GPU"}};
  // The job's own layout is always there to compare with.
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i < shown || rows[i].current) table.push_back(RowOf(rows[i]));
  }
  out += TextTable(table, 1);
  if (const size_t more = rows.size() - (table.size() - 1); more > 0) {
    out += fmt::format("... {} more\n", more);
  }
  out += "\n>: this job's layout";
  if (forecast.memory.empty()) {
    out += fmt::format("; memory and speed not estimated: {}\n",
                       forecast.model ? forecast.why_no_memory : forecast.why_no_model);
    return out;
  }
  if (fits < rows.size()) out += "; !: does not fit";
  out += fmt::format(
      "; GiB: the fullest rank; sends: a rank in a step\nestimates with the rates of {}: good for "
      "the order, not for the figure (docs/planning.md)\n",
      constants.name);
  if (!forecast.device) {
    out += "device memory not known: give --device-memory 80GiB, or type=H100 in the hostfile\n";
  }
  return out;
}

}  // namespace muster::plan
