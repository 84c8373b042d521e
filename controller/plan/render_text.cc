#include <absl/strings/ascii.h>
#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "controller/plan/render.h"

namespace muster::plan {
namespace {

using Row = std::vector<std::string>;

// Columns as wide as their widest cell; the first `left` columns are flush left, the others right.
std::string Table(const std::vector<Row>& rows, size_t left) {
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  for (const Row& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      if (c > 0) line += "  ";
      line += c < left ? fmt::format("{:<{}}", row[c], widths[c])
                       : fmt::format("{:>{}}", row[c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

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
  return Table(rows, 3);
}

std::string RankTable(const v1::Plan& plan) {
  std::vector<Row> rows = {{"host", "rank", "local", "device", "tp", "cp", "dp", "pp"}};
  for (const v1::RankPlan& rank : plan.ranks()) {
    rows.push_back({plan.nodes(static_cast<int>(rank.node())).host().host(),
                    std::to_string(rank.rank()), std::to_string(rank.local_rank()),
                    rank.has_device() ? std::to_string(rank.device()) : "-",
                    std::to_string(rank.tp()), std::to_string(rank.cp()), std::to_string(rank.dp()),
                    std::to_string(rank.pp())});
  }
  return Table(rows, 1);
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

std::string RenderText(const v1::Plan& plan) {
  std::vector<std::string> words;
  for (const std::string& word : plan.argv()) words.push_back(ShellQuoted(word));
  std::string out = fmt::format("job      {}\nsizes    {}\ncommand  {}\n", plan.name(),
                                absl::StrJoin(plan.arithmetic(), "; "), absl::StrJoin(words, " "));
  for (const v1::EnvVar& variable : plan.env()) {
    out += fmt::format("env      {}={}\n", variable.name(), ShellQuoted(variable.value()));
  }
  out += fmt::format("head     {}\n\n", plan.nodes(0).data_addr());
  out += NodeTable(plan) + "\n" + RankTable(plan);
  if (plan.warnings_size() > 0) out += "\n";
  for (const std::string& warning : plan.warnings()) out += fmt::format("warning: {}\n", warning);
  return out;
}

}  // namespace muster::plan
