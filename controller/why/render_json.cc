#include <absl/strings/ascii.h>

#include <nlohmann/json.hpp>

#include "controller/engine/transitions.h"
#include "controller/why/render.h"

namespace muster::why {
namespace {

using Value = nlohmann::ordered_json;

Value OrNull(const std::string& text) {
  return text.empty() ? Value(nullptr) : Value(text);
}

Value CauseValue(const CauseRank& cause) {
  Value lines = Value::array();
  for (const LogLine& line : cause.lines) {
    lines.push_back({{"stream", line.err ? "stderr" : "stdout"}, {"text", line.text}});
  }
  Value out;
  out["rank"] = cause.rank;
  out["host"] = cause.host;
  out["pid"] = cause.pid;
  out["end"] = cause.end;
  out["error"] = OrNull(cause.error);
  out["error_source"] = OrNull(cause.error_source);
  out["ports"] = cause.ports;
  out["call_stack"] = cause.call_stack;
  out["lines"] = std::move(lines);
  return out;
}

Value GroupValues(const std::vector<RankGroup>& groups) {
  Value out = Value::array();
  for (const RankGroup& group : groups) {
    Value value;
    value["ranks"] = group.ranks;
    value["doing"] = group.doing;
    value["last_line"] = OrNull(group.last_line);
    value["iterations"] = nullptr;
    if (group.iterations) value["iterations"] = {group.iterations->first, group.iterations->second};
    if (group.after_s) value["after_s"] = {group.after_s->first, group.after_s->second};
    out.push_back(std::move(value));
  }
  return out;
}

}  // namespace

std::string Json(const Why& why) {
  Value out;
  out["job"] = why.job;
  out["name"] = why.name;
  out["attempt"] = why.attempt;
  out["state"] = engine::Name(why.state);
  const bool ended = engine::IsTerminal(why.state);
  out["cause"] = nullptr;
  out["code"] = nullptr;
  if (ended) {
    constexpr size_t kPrefix = sizeof("CAUSE_") - 1;
    out["cause"] = absl::AsciiStrToLower(v1::Cause_Name(why.cause)).substr(kPrefix);
    out["code"] = why.code;
  }
  out["message"] = why.message;
  out["undecidable"] = why.causes.size() > 1;
  out["causes"] = Value::array();
  for (const CauseRank& cause : why.causes) out["causes"].push_back(CauseValue(cause));
  out["followed"] = GroupValues(why.followed);
  out["others"] = GroupValues(why.others);
  out["kernel"] = Value::array();
  for (const KernelEvidence& line : why.kernel) {
    out["kernel"].push_back({{"host", line.host},
                             {"time_ns", line.time_ns},
                             {"kind", line.kind},
                             {"text", line.text},
                             {"rank", line.rank ? Value(*line.rank) : Value(nullptr)}});
  }
  out["kernel_notes"] = why.kernel_notes;
  out["hints"] = Value::array();
  for (const Hint& hint : why.hints) {
    out["hints"].push_back({{"cause", hint.cause},
                            {"advice", hint.advice},
                            {"action", Name(hint.action)},
                            {"rule", hint.rule},
                            {"place", hint.place},
                            {"found", hint.found}});
  }
  out["nodes"] = Value::array();
  for (const NodeLine& node : why.nodes) {
    out["nodes"].push_back({{"host", node.host},
                            {"clean", node.clean},
                            {"verdict", node.verdict},
                            {"details", node.details}});
  }
  out["output_dir"] = why.output_dir;
  out["unfinished_logs"] = why.unfinished;
  out["remarks"] = why.remarks;
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace muster::why
