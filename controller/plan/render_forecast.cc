#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "controller/plan/groups.h"
#include "controller/plan/render.h"
#include "controller/plan/text_table.h"

namespace muster::plan {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

std::string ModelLine(const ModelShape& m) {
  std::string out = fmt::format("model    ");
  if (m.vocab > 0)
    out += fmt::format("{:.2f} B parameters: ", static_cast<double>(m.Parameters()) / 1e9);
  out += fmt::format("{} layers, hidden {}, MLP {}, {} heads in {} groups, sequence {}", m.layers,
                     m.hidden, m.ffn, m.heads, m.groups, m.seq);
  if (m.vocab > 0) out += fmt::format(", vocabulary {}", m.vocab);
  return out + (m.fp8 ? "; FP8\n" : "\n");
}

std::string StageLayers(const Forecast& f, uint32_t stage) {
  std::string out = f.split.Ranges(stage);
  if (stage == 0) out = "embedding, " + out;
  if (stage + 1 == f.split.counts.size()) out += ", head";
  return out;
}

// Consecutive stages that need the same are one row.
std::string MemoryTable(const v1::Plan& plan, const Forecast& f) {
  std::vector<Row> rows(1);
  rows[0] = {plan.pp() > 1 ? "GiB of a rank in stage" : "GiB of a rank", "layers"};
  for (const MemoryPart& part : kMemoryParts) rows[0].emplace_back(part.name);
  rows[0].emplace_back("total");
  for (uint32_t stage = 0; stage < f.memory.size(); ++stage) {
    Row row = {plan.pp() > 1 ? std::to_string(stage) : "all", StageLayers(f, stage)};
    for (const MemoryPart& part : kMemoryParts) row.push_back(GiB(f.memory[stage].*part.field));
    row.push_back(GiB(f.memory[stage].Total()));
    rows.push_back(std::move(row));
  }
  return TextTable(rows, 2);
}

std::string LayerTable(const Forecast& f) {
  std::vector<Row> rows = {{"stage", "layers"}};
  for (uint32_t stage = 0; stage < f.split.counts.size(); ++stage) {
    rows.push_back({std::to_string(stage), StageLayers(f, stage)});
  }
  return TextTable(rows, 2);
}

std::string FitLine(const Forecast& f) {
  if (!f.device) {
    return "device   memory not known: give --device-memory 80GiB, or type=H100 in the hostfile\n";
  }
  const double need = f.Needed();
  const double share = 100 * need / f.device->bytes;
  constexpr double kTight = 95;
  return fmt::format("device   {} of {} GiB ({}): {:.0f} %, {}\n", GiB(need), GiB(f.device->bytes),
                     f.device->source, share,
                     f.TooLarge()      ? "DOES NOT FIT"
                     : share >= kTight ? "tight: fragmentation may be too much"
                                       : "fits");
}

struct StepPart {
  std::string_view name;
  double StepTime::*field;
};
constexpr std::array kStepParts = {
    StepPart{"compute", &StepTime::compute},
    StepPart{"TP", &StepTime::tp},
    StepPart{"CP", &StepTime::cp},
    StepPart{"PP", &StepTime::pp},
    StepPart{"bubble", &StepTime::bubble},
    StepPart{"DP", &StepTime::dp},
    StepPart{"optimizer", &StepTime::optimizer},
};

std::string SpeedLines(const Performance& p, const Constants& constants) {
  std::vector<std::string> parts;
  for (const StepPart& part : kStepParts) {
    const double share = 100 * (p.step.*part.field) / p.step.Total();
    if (share >= 0.05) parts.push_back(fmt::format("{} {:.1f} %", part.name, share));
  }
  return fmt::format(
      "speed    about {:.0f} tokens/s, {:.0f} a GPU ({:.0f} TFLOP/s); a step {:.2f} s: {}\n"
      "sends    {} GiB a rank and step, {} of it in groups that cross hosts\n"
      "         an estimate with the rates of {}; formulas and errors: docs/planning.md\n",
      p.tokens_per_second, p.tokens_per_second_per_rank, p.tflops_per_rank, p.step.Total(),
      absl::StrJoin(parts, ", "), GiB(p.volume.Total()), GiB(p.volume.between_hosts),
      constants.name);
}

std::string Variables(const v1::JobSpec& job, const v1::RankSpec& spec) {
  std::string out;
  for (const v1::EnvVar& variable : spec.env()) {
    const bool secret =
        std::any_of(job.secrets().begin(), job.secrets().end(),
                    [&](const v1::EnvVar& s) { return s.name() == variable.name(); });
    out += fmt::format("env      {}={}\n", variable.name(),
                       secret ? "****" : ShownQuoted(variable.value()));
  }
  return out;
}

}  // namespace

std::string RenderForecast(const v1::Plan& plan, const Forecast& f, const Constants& constants) {
  if (!f.model) return fmt::format("\nmemory   not estimated: {}\n", f.why_no_model);
  std::string out = "\n" + ModelLine(*f.model);
  if (f.memory.empty()) {
    if (plan.pp() > 1) out += "\n" + LayerTable(f);
    return out + fmt::format("memory   not estimated: {}\n", f.why_no_memory);
  }
  out += "\n" + MemoryTable(plan, f) + FitLine(f);
  if (f.performance) out += "\n" + SpeedLines(*f.performance, constants);
  return out;
}

std::string RenderRank(const v1::Plan& plan, const v1::JobSpec& job, const v1::RankSpec& spec,
                       const Forecast& f) {
  const v1::RankPlan& rank = plan.ranks(static_cast<int>(spec.rank()));
  const v1::NodePlan& node = plan.nodes(static_cast<int>(rank.node()));
  std::string out = fmt::format(
      "rank     {} of {}\nhost     {} ({}), local rank {} of {}, device {}\n"
      "place    tp {} of {}, cp {} of {}, dp {} of {}, pp {} of {}\n",
      rank.rank(), plan.world(), node.host().host(), node.data_addr(), rank.local_rank(),
      node.num_ranks(), rank.has_device() ? std::to_string(rank.device()) : "-", rank.tp(),
      plan.tp(), rank.cp(), plan.cp(), rank.dp(), plan.dp(), rank.pp(), plan.pp());
  if (f.model) out += fmt::format("layers   {}\n", StageLayers(f, rank.pp()));
  if (!f.memory.empty()) {
    std::vector<std::string> parts;
    for (const MemoryPart& part : kMemoryParts) {
      const double bytes = f.memory[rank.pp()].*part.field;
      if (bytes >= 0.05 * kGiB) parts.push_back(fmt::format("{} {}", part.name, GiB(bytes)));
    }
    out += fmt::format("memory   {} GiB: {}\n", GiB(f.memory[rank.pp()].Total()),
                       absl::StrJoin(parts, ", "));
  }
  for (const GroupInfo& info : GroupKinds()) {
    for (const std::vector<uint32_t>& group : Groups(plan, info.kind)) {
      if (group.size() < 2 || std::find(group.begin(), group.end(), rank.rank()) == group.end()) {
        continue;
      }
      out += fmt::format("group    {}: ranks {}\n", info.name, RankList(group));
    }
  }
  out += fmt::format("folder   {}\n", ShownQuoted(spec.working_dir()));
  out += Variables(job, spec);
  std::vector<std::string> words;
  for (const std::string& word : spec.argv()) words.push_back(ShownQuoted(word));
  return out + fmt::format("command  {}\n", absl::StrJoin(words, " "));
}

}  // namespace muster::plan
