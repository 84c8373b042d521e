#include "controller/plan/templates.h"

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "controller/plan/planner.h"

namespace muster::plan {
namespace {

// All names, in the order of docs/recipe.md.
const std::vector<std::string>& Names() {
  static const auto& names = *new std::vector<std::string>{"rank",
                                                           "local_rank",
                                                           "world",
                                                           "local_world",
                                                           "node_rank",
                                                           "nnodes",
                                                           "tp",
                                                           "pp",
                                                           "cp",
                                                           "dp",
                                                           "vp",
                                                           "tp_rank",
                                                           "pp_rank",
                                                           "cp_rank",
                                                           "dp_rank",
                                                           "mbs",
                                                           "num_microbatches",
                                                           "gbs",
                                                           "head_addr",
                                                           "master_port",
                                                           "node_addr",
                                                           "host",
                                                           "job_name",
                                                           "attempt",
                                                           "run_id",
                                                           "last_checkpoint"};
  return names;
}

bool IsOurs(std::string_view name) {
  return std::find(Names().begin(), Names().end(), name) != Names().end();
}

// Lower case, without the separators that people mix up.
std::string Squeezed(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '_' && c != '-') out += absl::ascii_tolower(static_cast<unsigned char>(c));
  }
  return out;
}

// One letter changed, added, dropped, or two neighbours swapped.
bool WithinOneEdit(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > 1) return false;
  size_t i = 0;
  while (i < a.size() && a[i] == b[i]) ++i;
  if (a.size() < b.size()) return a.substr(i) == b.substr(i + 1);
  if (a.substr(std::min(a.size(), i + 1)) == b.substr(std::min(b.size(), i + 1))) return true;
  return i + 1 < a.size() && a[i] == b[i + 1] && a[i + 1] == b[i] &&
         a.substr(i + 2) == b.substr(i + 2);
}

// Our name that `name` was probably meant to be. Short names are too near to everything to guess
// at.
std::optional<std::string> NearlyOurs(std::string_view name) {
  constexpr size_t kShortest = 5;
  const std::string squeezed = Squeezed(name);
  for (const std::string& ours : Names()) {
    if (Squeezed(ours) == squeezed) return ours;
  }
  if (name.size() < kShortest) return std::nullopt;
  for (const std::string& ours : Names()) {
    if (ours.size() >= kShortest && WithinOneEdit(name, ours)) return ours;
  }
  return std::nullopt;
}

// The name in `{name}` at the start of `text`, or empty.
std::string_view NameAt(std::string_view text) {
  size_t end = 1;
  while (end < text.size() && (absl::ascii_isalnum(static_cast<unsigned char>(text[end])) ||
                               text[end] == '_' || text[end] == '-')) {
    ++end;
  }
  if (end == 1 || end == text.size() || text[end] != '}') return {};
  return text.substr(1, end - 1);
}

// True if the braces that text[at] belongs to follow a '$'.
bool IsShellVariable(std::string_view text, size_t at) {
  while (at > 0 && text[at - 1] == '{') --at;
  return at > 0 && text[at - 1] == '$';
}

struct Handler {
  // A template: what to write for it, or nothing to leave it as it is.
  std::function<std::optional<std::string>(std::string_view name)> value;
};

// Walks over `text` and rewrites its templates.
std::string Walk(std::string_view text, const Handler& handler) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    const bool after_dollar = IsShellVariable(text, i);
    if (rest.starts_with("{{")) {
      const std::string_view name = NameAt(rest.substr(1));
      if (!name.empty() && !after_dollar && (IsOurs(name) || NearlyOurs(name))) {
        out += fmt::format("{{{}}}", name);
        i += name.size() + 3;
        if (i < text.size() && text[i] == '}') ++i;
        continue;
      }
    } else if (rest[0] == '{' && !after_dollar) {
      const std::string_view name = NameAt(rest);
      if (!name.empty()) {
        if (const auto value = handler.value(name)) {
          out += *value;
          i += name.size() + 2;
          continue;
        }
      }
    }
    out += rest[0];
    ++i;
  }
  return out;
}

}  // namespace

absl::Status CheckTemplates(std::string_view text) {
  absl::Status status;
  Walk(text, {[&](std::string_view name) -> std::optional<std::string> {
         const std::optional<std::string> near = IsOurs(name) ? std::nullopt : NearlyOurs(name);
         if (near && status.ok()) {
           status = absl::InvalidArgumentError(fmt::format(
               "unknown template {{{}}} in '{}'; did you mean {{{}}}? (write {{{{{}}}}} "
               "for the text itself)",
               name, text, *near, name));
         }
         return std::nullopt;
       }});
  return status;
}

std::string FillTemplates(std::string_view text, const TemplateValues& values) {
  return Walk(text, {[&](std::string_view name) -> std::optional<std::string> {
                const auto it = values.find(name);
                if (it == values.end()) return std::nullopt;
                return it->second;
              }});
}

TemplateValues ValuesFor(const v1::Plan& plan, uint32_t rank, const Launch& launch) {
  const v1::RankPlan& me = plan.ranks(static_cast<int>(rank));
  const v1::NodePlan& node = plan.nodes(static_cast<int>(me.node()));
  return {
      {"rank", std::to_string(rank)},
      {"local_rank", std::to_string(me.local_rank())},
      {"world", std::to_string(plan.world())},
      {"local_world", std::to_string(node.num_ranks())},
      {"node_rank", std::to_string(me.node())},
      {"nnodes", std::to_string(plan.nodes_size())},
      {"tp", std::to_string(plan.tp())},
      {"pp", std::to_string(plan.pp())},
      {"cp", std::to_string(plan.cp())},
      {"dp", std::to_string(plan.dp())},
      {"vp", std::to_string(plan.vp())},
      {"tp_rank", std::to_string(me.tp())},
      {"pp_rank", std::to_string(me.pp())},
      {"cp_rank", std::to_string(me.cp())},
      {"dp_rank", std::to_string(me.dp())},
      {"mbs", std::to_string(plan.micro_batch())},
      {"num_microbatches", std::to_string(plan.num_microbatches())},
      {"gbs", std::to_string(plan.global_batch())},
      {"head_addr", plan.nodes(0).data_addr()},
      {"master_port", std::to_string(launch.master_port)},
      {"node_addr", node.data_addr()},
      {"host", node.host().host()},
      {"job_name", plan.name()},
      {"attempt", std::to_string(launch.attempt)},
      {"run_id", launch.run_id},
      {"last_checkpoint", launch.last_checkpoint},
  };
}

}  // namespace muster::plan
