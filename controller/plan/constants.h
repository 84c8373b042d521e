#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

// Rates of the analytic model: constants.toml, which is built in, or a file of the same form.

namespace muster::plan {

struct Constants {
  std::string name;  // of the device
  double fp8_tflops = 0;
  double bf16_tflops = 0;
  double attention_tflops = 0;
  double memory_gb_s = 0;
  double optimizer_gb_s = 0;
  double idle_fraction = 0;
  double intra_host_gb_s = 0;  // of one device, one direction
  double inter_host_gb_s = 0;
  double intra_host_us = 0;  // start of a collective
  double inter_host_us = 0;
};

// The built-in ones. Immutable, any thread.
const Constants& DefaultConstants();

// The built-in ones with what `text` says. InvalidArgument with "source:line:column: message"
// lines.
absl::StatusOr<Constants> ParseConstants(std::string_view text, const std::string& source);

}  // namespace muster::plan
