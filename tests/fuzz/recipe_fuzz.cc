#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "controller/hostfile/hostfile.h"
#include "controller/plan/planner.h"
#include "controller/plan/recipe.h"
#include "controller/plan/render.h"

// Any bytes are a recipe or complaints with positions; a recipe becomes a plan and ranks, or an
// error.

namespace {

using namespace muster;  // NOLINT(google-build-using-namespace)

plan::Surroundings FakeSurroundings() {
  plan::Surroundings out;
  out.bin_dir = "/opt/muster/bin";
  out.working_dir = "/work";
  out.get_env = [](const std::string& name) { return std::optional<std::string>("env-" + name); };
  out.read_file = [](const std::string& path) { return "V=file-" + path; };
  out.is_executable = [](const std::string&) { return true; };
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const v1::Inventory& inventory =
      *new v1::Inventory(hostfile::ParseHostfile("a gpus=2,0\nb slots=6\n").inventory);
  static const plan::Surroundings& surroundings = *new plan::Surroundings(FakeSurroundings());
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto recipe = plan::ParseRecipe(text, "r.toml");
  if (!recipe.ok()) {
    if (!std::string(recipe.status().message()).starts_with("r.toml:")) std::abort();
    return 0;
  }
  auto spec = plan::BuildJobSpec(&*recipe, {}, surroundings);
  if (!spec.ok()) return 0;
  *spec->mutable_inventory() = inventory;
  const auto plan = plan::MakePlan(*spec);
  if (!plan.ok()) return 0;
  if (plan->world() != plan->tp() * plan->pp() * plan->cp() * plan->dp()) std::abort();
  plan::RenderText(*plan);
  plan::ToJson(*plan);
  for (uint32_t rank = 0; rank < plan->world(); ++rank) {
    if (!plan::MakeRankSpec(*spec, *plan, rank, {0, 29500, "run", ""}).ok()) std::abort();
  }
  return 0;
}
