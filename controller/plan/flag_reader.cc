#include <absl/strings/numbers.h>

#include <cmath>

#include "controller/plan/model_shape.h"

namespace muster::plan {

std::optional<std::vector<std::string>> FlagReader::Find(std::string_view name) const {
  for (int i = spec_.flags_size(); i-- > 0;) {
    if (spec_.flags(i).name() == name) {
      return std::vector<std::string>(spec_.flags(i).values().begin(),
                                      spec_.flags(i).values().end());
    }
  }
  const std::string dashed = "--" + std::string(name);
  for (int i = spec_.command_size(); i-- > 1;) {
    const std::string& word = spec_.command(i);
    if (word.starts_with(dashed + "=")) {
      return std::vector<std::string>{word.substr(dashed.size() + 1)};
    }
    if (word != dashed) continue;
    std::vector<std::string> values;
    for (int j = i + 1; j < spec_.command_size() && !spec_.command(j).starts_with("--"); ++j) {
      values.push_back(spec_.command(j));
    }
    return values;
  }
  return std::nullopt;
}

std::string FlagReader::Text(std::string_view name) const {
  const auto values = Find(name);
  return values && !values->empty() ? values->front() : "";
}

std::optional<double> FlagReader::Number(std::string_view name) const {
  double out = 0;
  if (!absl::SimpleAtod(Text(name), &out) || !std::isfinite(out)) return std::nullopt;
  return out;
}

std::optional<uint32_t> FlagReader::Count(std::string_view name) const {
  uint32_t out = 0;
  if (!absl::SimpleAtoi(Text(name), &out)) return std::nullopt;
  return out;
}

}  // namespace muster::plan
