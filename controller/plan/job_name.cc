#include "controller/plan/job_name.h"

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include <algorithm>

#include "controller/plan/trainer_flags.h"

namespace muster::plan {
namespace {

constexpr size_t kMaxName = 100;

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '+' ||
         c == '-';
}

// Two jobs with equal sizes but for CP or VP should not share a name, so these two appear when they
// are in use.
std::string SizesName(const Sizes& s) {
  return fmt::format("tp{}_pp{}{}{}_dp{}_mbs{}_numbs{}_gbs{}_gpus{}", s.tp, s.pp,
                     s.cp > 1 ? fmt::format("_cp{}", s.cp) : "",
                     s.vp > 1 ? fmt::format("_vp{}", s.vp) : "", s.dp, s.micro_batch,
                     s.num_microbatches, s.global_batch, s.world);
}

}  // namespace

absl::Status CheckJobName(std::string_view name) {
  const bool characters = !name.empty() && name.size() <= kMaxName &&
                          std::all_of(name.begin(), name.end(), IsNameCharacter) &&
                          absl::ascii_isalnum(static_cast<unsigned char>(name[0]));
  if (!characters) {
    return absl::InvalidArgumentError(
        fmt::format("bad job name '{}': 1-{} letters, digits, '.', '_', '+' and '-', the first a "
                    "letter or digit",
                    name, kMaxName));
  }
  if (name == "last" || std::all_of(name.begin(), name.end(), [](char c) {
        return absl::ascii_isdigit(static_cast<unsigned char>(c));
      })) {
    return absl::InvalidArgumentError(
        fmt::format("bad job name '{}': numbers and 'last' mean jobs on the command line", name));
  }
  return absl::OkStatus();
}

std::string JobName(const v1::JobSpec& spec, const Sizes& sizes) {
  if (!spec.name().empty()) return spec.name();
  if (IsTrainer(spec)) return SizesName(sizes);
  const std::string& program = spec.command(0);
  std::string name = program.substr(program.rfind('/') + 1).substr(0, kMaxName - 4);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !IsNameCharacter(c); }, '_');
  return CheckJobName(name).ok() ? name : "job_" + name;
}

}  // namespace muster::plan
