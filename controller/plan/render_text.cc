#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/utf8.h"
#include "controller/plan/groups.h"
#include "controller/plan/rank_table.h"
#include "controller/plan/render.h"
#include "controller/plan/text_table.h"

namespace muster::plan {
namespace {

constexpr uint32_t kFoldAbove = 16;   // ranks
constexpr size_t kCommandWidth = 88;  // columns

std::string RankRange(const v1::NodePlan& node) {
  const uint32_t last = node.first_rank() + node.num_ranks() - 1;
  return node.num_ranks() == 1 ? std::to_string(last)
                               : fmt::format("{}-{}", node.first_rank(), last);
}

std::string NodeTable(const v1::Plan& plan) {
  std::vector<Row> rows = {{"host", "address", "ranks"}};
  for (const v1::NodePlan& node : plan.nodes()) {
    rows.push_back({node.host().host(), node.data_addr(), RankRange(node)});
  }
  return TextTable(rows, 3);
}

// Kinds with the same groups are one row.
std::string GroupTable(const v1::Plan& plan) {
  struct Kinds {
    std::vector<std::string> names;
    std::vector<std::string> uses;
    std::vector<std::vector<uint32_t>> groups;
    GroupSpread spread;
  };
  std::vector<Kinds> found;
  for (const GroupInfo& info : GroupKinds()) {
    const GroupSpread spread = Spread(plan, info.kind);
    if (spread.size < 2) continue;
    auto groups = Groups(plan, info.kind);
    auto same = std::find_if(found.begin(), found.end(),
                             [&](const Kinds& kinds) { return kinds.groups == groups; });
    if (same == found.end()) same = found.insert(found.end(), {{}, {}, std::move(groups), spread});
    same->names.emplace_back(info.name);
    if (!info.use.empty()) same->uses.emplace_back(info.use);
  }
  std::vector<Row> rows = {{"group", "carries", "for example", "groups", "ranks", "cross hosts"}};
  for (const Kinds& kinds : found) {
    const GroupSpread& s = kinds.spread;
    rows.push_back({absl::StrJoin(kinds.names, ", "), absl::StrJoin(kinds.uses, ", "),
                    RankList(s.example), std::to_string(s.count), std::to_string(s.size),
                    s.crossing == 0 ? "-" : fmt::format("{} of {}", s.crossing, s.count)});
  }
  return found.empty() ? "" : "\n" + TextTable(rows, 3);
}

std::string BubbleLine(const v1::Plan& plan) {
  if (plan.pp() < 2 || plan.num_microbatches() == 0) return "";
  const Sizes s = SizesOf(plan);
  return fmt::format("bubble   (PP {0} - 1) / (VP {1} x {2} + PP {0} - 1) = {3:.1f} % of a step\n",
                     s.pp, s.vp, s.num_microbatches, 100 * BubbleFraction(s));
}

// The command as a shell takes it, in lines of kCommandWidth where words allow it; a value stays
// beside its flag. `brief`: the first line only.
std::string CommandText(const v1::Plan& plan, bool brief) {
  std::vector<std::string> pieces;
  bool after_flag = false;
  for (const std::string& word : plan.argv()) {
    const bool flag = word.starts_with('-');
    if (after_flag && !flag) {
      pieces.back() += " " + ShownQuoted(word);
    } else {
      pieces.push_back(ShownQuoted(word));
    }
    after_flag = flag;
  }
  std::vector<std::string> lines(1);
  for (const std::string& piece : pieces) {
    std::string& line = lines.back();
    if (line.empty()) {
      line = piece;
    } else if (line.size() + 1 + piece.size() <= kCommandWidth) {
      line += " " + piece;
    } else {
      lines.push_back(piece);
    }
  }
  if (brief && lines.size() > 1) return lines.front() + " ... (muster plan shows the rest)";
  return absl::StrJoin(lines, " \\\n         ");
}

}  // namespace

std::string ShellQuoted(const std::string& word) {
  const auto plain = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("%+,-./:=@_{}").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string ShownQuoted(const std::string& word) {
  const bool text = IsValidUtf8(word) && std::none_of(word.begin(), word.end(), [](char c) {
                      return absl::ascii_iscntrl(static_cast<unsigned char>(c));
                    });
  return text ? ShellQuoted(word) : "$'" + absl::CHexEscape(word) + "'";
}

std::string RenderText(const v1::Plan& plan, RankRows rows) {
  std::string out = fmt::format("job      {}\nsizes    {}\n{}command  {}\n", plan.name(),
                                absl::StrJoin(plan.arithmetic(), "; "), BubbleLine(plan),
                                CommandText(plan, rows == RankRows::kBrief));
  for (const v1::EnvVar& variable : plan.env()) {
    out += fmt::format("env      {}={}\n", variable.name(), ShownQuoted(variable.value()));
  }
  out += fmt::format("head     {}\n\n", plan.nodes(0).data_addr());
  if (rows != RankRows::kAll && plan.world() > kFoldAbove) {
    out += FoldedRankTable(plan) + "(muster plan --all-ranks: every rank; --rank N: all of one)\n";
  } else {
    out += NodeTable(plan) + "\n" + WholeRankTable(plan);
  }
  // A plain command without sizes has no use for groups of a model.
  if (plan.num_microbatches() > 0 || plan.tp() * plan.pp() * plan.cp() > 1) out += GroupTable(plan);
  if (plan.warnings_size() > 0) out += "\n";
  for (const std::string& warning : plan.warnings()) out += fmt::format("warning: {}\n", warning);
  return out;
}

}  // namespace muster::plan
