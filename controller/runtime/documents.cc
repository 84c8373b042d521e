#include "controller/runtime/documents.h"

#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>

#include "controller/engine/text.h"
#include "controller/engine/transitions.h"

namespace muster::runtime {
namespace {

// A TOML basic string. Bytes that are no UTF-8 can't be said in TOML and become '?'.
std::string Quoted(const std::string& bytes) {
  std::string out = "\"";
  for (const char c : bytes) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", std::string(1, c));
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += c;
    }
  }
  return engine::Printable(out + "\"");
}

template <typename Words>
std::string QuotedList(const Words& words) {
  std::string out = "[";
  for (const auto& word : words) absl::StrAppend(&out, out.size() == 1 ? "" : ", ", Quoted(word));
  return out + "]";
}

template <typename Variables>
void AppendTable(const char* title, const Variables& variables, std::string& out) {
  if (variables.empty()) return;
  absl::StrAppend(&out, "\n[", title, "]\n");
  for (const auto& variable : variables) {
    absl::StrAppend(&out, Quoted(variable.name()), " = ", Quoted(variable.value()), "\n");
  }
}

}  // namespace

std::string EventLine(const v1::JobEvent& event) {
  nlohmann::ordered_json json;
  json["sequence"] = event.sequence();
  json["time_ns"] = event.time_ns();
  json["kind"] = event.kind();
  json["severity"] = event.severity();
  json["text"] = event.text();
  if (event.kind() == "state") json["state"] = engine::Name(event.state());
  if (!event.host().empty()) json["host"] = event.host();
  if (event.has_rank()) json["rank"] = event.rank();
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string JobToml(const v1::JobSpec& spec) {
  if (!spec.recipe().empty()) return spec.recipe();
  std::string out = "# Written by muster submit: the same job as a recipe.\n[job]\n";
  if (!spec.name().empty()) absl::StrAppend(&out, "name = ", Quoted(spec.name()), "\n");
  absl::StrAppend(&out, "command = ", QuotedList(spec.command()), "\n");
  std::string parallel;
  const auto size = [&](const char* key, uint32_t value) {
    if (value != 0) absl::StrAppend(&parallel, key, " = ", value, "\n");
  };
  size("tp", spec.parallel().tp());
  size("pp", spec.parallel().pp());
  size("cp", spec.parallel().cp());
  size("vp", spec.parallel().vp());
  size("micro_batch", spec.parallel().micro_batch());
  size("global_batch", spec.parallel().global_batch());
  size("num_microbatches", spec.parallel().num_microbatches());
  if (!parallel.empty()) absl::StrAppend(&out, "\n[parallel]\n", parallel);
  if (spec.flags_size() > 0) out += "\n[flags]\n";
  for (const auto& flag : spec.flags()) {
    absl::StrAppend(&out, Quoted(flag.name()), " = ",
                    flag.values_size() == 0   ? "true"
                    : flag.values_size() == 1 ? Quoted(flag.values(0))
                                              : QuotedList(flag.values()),
                    "\n");
  }
  AppendTable("env", spec.env(), out);
  // Values are masked: a person fills them in again.
  AppendTable("secrets", spec.secrets(), out);
  return out;
}

}  // namespace muster::runtime
