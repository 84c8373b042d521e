#include "controller/plan/constants.h"

#include <array>

#include "common/status.h"
#include "controller/plan/recipe_reader.h"
#include "controller/plan/toml_value.h"

namespace muster::plan {

extern const char kConstantsToml[];  // made from constants.toml

namespace {

struct Field {
  std::string_view key;
  double Constants::*field;
};
constexpr std::array kDevice = {
    Field{"fp8_tflops", &Constants::fp8_tflops},
    Field{"bf16_tflops", &Constants::bf16_tflops},
    Field{"attention_tflops", &Constants::attention_tflops},
    Field{"memory_gb_s", &Constants::memory_gb_s},
    Field{"optimizer_gb_s", &Constants::optimizer_gb_s},
};
constexpr std::array kLinks = {
    Field{"intra_host_gb_s", &Constants::intra_host_gb_s},
    Field{"inter_host_gb_s", &Constants::inter_host_gb_s},
    Field{"intra_host_us", &Constants::intra_host_us},
    Field{"inter_host_us", &Constants::inter_host_us},
};

absl::StatusOr<Constants> Parse(std::string_view text, const std::string& source, Constants out) {
  MUSTER_ASSIGN_OR_RETURN(const TomlValue root, ParseToml(text, source));
  Complaints complaints(source);
  TableReader top(root, "the constants", complaints);
  if (const TomlEntry* entry = top.FindTable("device")) {
    TableReader device(entry->value, "[device]", complaints);
    if (std::string name = device.String("name"); !name.empty()) out.name = std::move(name);
    for (const Field& field : kDevice) {
      out.*field.field = device.Number(field.key, 1e-6, 1e9).value_or(out.*field.field);
    }
    out.idle_fraction = device.Number("idle_fraction", 0, 10).value_or(out.idle_fraction);
    device.Finish();
  }
  if (const TomlEntry* entry = top.FindTable("links")) {
    TableReader links(entry->value, "[links]", complaints);
    for (const Field& field : kLinks) {
      out.*field.field = links.Number(field.key, 1e-6, 1e9).value_or(out.*field.field);
    }
    links.Finish();
  }
  top.Finish();
  MUSTER_RETURN_IF_ERROR(complaints.ToStatus());
  return out;
}

}  // namespace

const Constants& DefaultConstants() {
  static const Constants kConstants = *Parse(kConstantsToml, "constants.toml", {});
  return kConstants;
}

absl::StatusOr<Constants> ParseConstants(std::string_view text, const std::string& source) {
  return Parse(text, source, DefaultConstants());
}

}  // namespace muster::plan
