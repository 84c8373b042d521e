#pragma once

#include <absl/status/statusor.h>
#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "controller/cli/flags.h"

// What the subcommand files share of CLI11.

namespace muster::cli {

// An option whose text goes through `parse` (StatusOr of the target's type). What is wrong with it
// is a usage error.
template <typename Target, typename Parse>
CLI::Option* ParsedOption(CLI::App* app, const std::string& names, Target* target, Parse parse,
                          const std::string& value_name, const std::string& help) {
  const std::string shown = names.substr(names.find("--"));
  return app
      ->add_option_function<std::string>(
          names,
          [=](const std::string& text) {
            auto value = parse(text);
            if (!value.ok()) {
              throw CLI::ValidationError(shown, std::string(value.status().message()));
            }
            *target = *std::move(value);
          },
          help)
      ->type_name(value_name);
}

// A whole number from `low` to `high`.
template <typename Target>
CLI::Option* NumberOption(CLI::App* app, const std::string& names, Target* target, uint32_t low,
                          uint32_t high, const std::string& help) {
  return ParsedOption(
      app, names, target,
      [low, high](std::string_view text) -> absl::StatusOr<uint32_t> {
        const absl::StatusOr<uint64_t> value = ParseNumber(text, low, high);
        if (!value.ok()) return value.status();
        return static_cast<uint32_t>(*value);
      },
      "N", help);
}

inline CLI::Option* JsonFlag(CLI::App* app, bool* json) {
  return app->add_flag("--json", *json, "Machine-readable output on stdout");
}

}  // namespace muster::cli
