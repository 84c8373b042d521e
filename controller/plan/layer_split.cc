#include "controller/plan/layer_split.h"

#include <fmt/format.h>

#include <limits>
#include <numeric>

namespace muster::plan {
namespace {

// Layers of a stage without virtual chunks, or what does not divide.
std::optional<std::string> EvenStages(const ModelShape& m, uint32_t pp,
                                      std::vector<uint32_t>& out) {
  const uint32_t extra = (m.embedding_counts_as_layer ? 1 : 0) + (m.loss_counts_as_layer ? 1 : 0);
  const uint64_t total = uint64_t{m.layers} + extra;
  if (total % pp != 0) {
    return fmt::format("{} layers{} do not split evenly over PP {}", m.layers,
                       extra > 0 ? fmt::format(" + {} for embedding and loss", extra) : "", pp);
  }
  if (total / pp > std::numeric_limits<uint32_t>::max()) {
    return fmt::format("{} layers are more than a stage can have", m.layers);
  }
  out.assign(pp, static_cast<uint32_t>(total / pp));
  return std::nullopt;
}

std::optional<std::string> UnevenStages(const ModelShape& m, uint32_t pp,
                                        std::vector<uint32_t>& out) {
  const uint32_t first = m.first_stage_layers.value_or(0);
  const uint32_t last = m.last_stage_layers.value_or(0);
  const uint32_t ends = (m.first_stage_layers ? 1U : 0U) + (m.last_stage_layers ? 1U : 0U);
  const std::string text = fmt::format(
      "{} layers with {}{}{}", m.layers,
      m.first_stage_layers ? fmt::format("{} on the first stage", first) : "",
      ends == 2 ? " and " : "", m.last_stage_layers ? fmt::format("{} on the last", last) : "");
  if (pp < 2) return text + " need a pipeline: PP is 1";
  const uint64_t fixed = uint64_t{first} + last;
  const uint32_t middle = pp - ends;
  if (fixed > m.layers || (middle == 0 && fixed != m.layers)) {
    return fmt::format("{} do not make up {} over PP {}", text, m.layers, pp);
  }
  const auto rest = static_cast<uint32_t>(m.layers - fixed);
  if (middle > 0 && rest % middle != 0) {
    return fmt::format("{} leave {}, which do not split evenly over the other {} stages of PP {}",
                       text, rest, middle, pp);
  }
  out.assign(pp, middle > 0 ? rest / middle : 0);
  if (m.first_stage_layers) out.front() = first;
  if (m.last_stage_layers) out.back() = last;
  return std::nullopt;
}

}  // namespace

uint32_t LayerSplit::Layers(uint32_t stage) const {
  return std::accumulate(counts[stage].begin(), counts[stage].end(), 0U);
}

std::string LayerSplit::Ranges(uint32_t stage) const {
  std::string out;
  for (size_t chunk = 0; chunk < counts[stage].size(); ++chunk) {
    const uint32_t count = counts[stage][chunk];
    if (count == 0) continue;
    const uint32_t first = starts[stage][chunk];
    out += fmt::format("{}{}", out.empty() ? "" : ", ", first);
    if (count > 1) out += fmt::format("-{}", first + count - 1);
  }
  return out.empty() ? "none" : out;
}

std::optional<std::string> SplitLayers(const ModelShape& m, uint32_t pp, uint32_t vp,
                                       LayerSplit* out) {
  const bool uneven = m.first_stage_layers || m.last_stage_layers;
  if (uneven && (m.embedding_counts_as_layer || m.loss_counts_as_layer)) {
    return "--decoder-first/last-pipeline-num-layers and --account-for-*-in-pipeline-split exclude "
           "each other";
  }
  std::vector<uint32_t> stages;
  if (auto wrong = uneven ? UnevenStages(m, pp, stages) : EvenStages(m, pp, stages)) return wrong;
  LayerSplit split;
  for (const uint32_t layers : stages) {
    if (layers % vp != 0 || (layers == 0 && vp > 1)) {
      return fmt::format("{} layers of a stage (PP {}) do not split evenly over VP {}", layers, pp,
                         vp);
    }
    split.counts.emplace_back(vp, layers / vp);
  }
  // What counts as a layer there takes a real one's place.
  uint32_t& first = split.counts.front().front();
  uint32_t& last = split.counts.back().back();
  for (const auto& [counts, layers] :
       {std::pair{m.embedding_counts_as_layer, &first}, std::pair{m.loss_counts_as_layer, &last}}) {
    if (!counts) continue;
    if (*layers == 0) {
      return fmt::format("no layer is left beside embedding and loss with PP {} x VP {}", pp, vp);
    }
    --*layers;
  }
  if (out == nullptr) return std::nullopt;
  split.starts.assign(pp, std::vector<uint32_t>(vp));
  uint32_t next = 0;
  for (uint32_t chunk = 0; chunk < vp; ++chunk) {
    for (uint32_t stage = 0; stage < pp; ++stage) {
      split.starts[stage][chunk] = next;
      next += split.counts[stage][chunk];
    }
  }
  *out = std::move(split);
  return std::nullopt;
}

std::optional<std::string> CheckModel(const ModelShape& m, const Sizes& s) {
  struct Rule {
    std::string_view what;
    uint64_t value;
    std::string by;
    uint64_t divisor;
  };
  std::vector<Rule> rules = {
      {"attention heads", m.heads, fmt::format("{} query groups", m.groups), m.groups},
      {"attention heads", m.heads, fmt::format("TP {}", s.tp), s.tp},
      {"query groups", m.groups, fmt::format("TP {}", s.tp), s.tp},
      {"MLP units", m.ffn, fmt::format("TP {}", s.tp), s.tp},
  };
  if (!m.head_dim_given) {
    rules.push_back({"hidden units", m.hidden,
                     fmt::format("{} attention heads, and no kv-channels is given", m.heads),
                     m.heads});
  }
  if (s.cp > 1) {
    rules.push_back({"tokens of a sequence", m.seq,
                     fmt::format("2 x CP {} = {}", s.cp, 2ULL * s.cp), 2ULL * s.cp});
  }
  if (m.sequence_parallel && s.tp > 1) {
    const uint64_t pieces = uint64_t{s.cp} * s.tp;
    rules.push_back({"tokens of a sequence", m.seq,
                     fmt::format("CP {} x TP {} = {} (sequence parallel)", s.cp, s.tp, pieces),
                     pieces});
  }
  for (const Rule& rule : rules) {
    if (rule.value % rule.divisor == 0) continue;
    return fmt::format("{} {} are not divisible by {}", rule.value, rule.what, rule.by);
  }
  return SplitLayers(m, s.pp, s.vp, nullptr);
}

}  // namespace muster::plan
