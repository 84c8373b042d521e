#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "controller/hostfile/hostfile.h"
#include "controller/plan/planner.h"
#include "controller/plan/recipe.h"

// Every recipe and hostfile that the project ships can be planned.

namespace muster::plan {
namespace {

std::filesystem::path Source() {
  const char* source = std::getenv("MUSTER_SOURCE");
  return source == nullptr ? "." : source;
}

TEST(Shipped, EveryHostfileIsRight) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(Source() / "hostfiles")) {
    const hostfile::Result result = hostfile::ReadHostfile(entry.path());
    EXPECT_TRUE(result.ok()) << FormatErrors(entry.path(), result.errors);
    EXPECT_EQ(result.inventory.warnings_size(), 0) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 3U);
}

TEST(Shipped, EveryRecipeCanBePlanned) {
  // On the hosts that the recipe is for.
  const std::map<std::string, std::string> hosts = {
      {"tiny_cpu.toml", "two_local_workers"},
      {"torchrun_any.toml", "two_local_workers"},
      {"llama3_8b_fp8.toml", "two_nodes_16_gpus"},
      {"two_nodes_16_gpus.toml", "two_nodes_16_gpus"},
  };
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(Source() / "recipes")) {
    if (entry.path().extension() != ".toml") continue;
    const std::string name = entry.path().filename();
    SCOPED_TRACE(name);
    ASSERT_TRUE(hosts.contains(name)) << "say here which hosts this recipe is for";
    auto spec = LoadRecipe(entry.path(), {}, Surroundings::Real("/opt/muster/bin"));
    ASSERT_TRUE(spec.ok()) << spec.status();
    *spec->mutable_inventory() =
        hostfile::ReadHostfile(Source() / "hostfiles" / hosts.at(name)).inventory;
    const auto plan = MakePlan(*spec);
    EXPECT_TRUE(plan.ok()) << plan.status();
    ++count;
  }
  EXPECT_EQ(count, hosts.size());
}

TEST(Shipped, TheDemoIsFourDataParallelRanks) {
  auto spec = LoadRecipe(Source() / "recipes/tiny_cpu.toml", {}, Surroundings::Real(""));
  ASSERT_TRUE(spec.ok()) << spec.status();
  *spec->mutable_inventory() =
      hostfile::ReadHostfile(Source() / "hostfiles/two_local_workers").inventory;
  const auto plan = MakePlan(*spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->tp(), 1U);
  EXPECT_EQ(plan->pp(), 1U);
  EXPECT_EQ(plan->dp(), 4U);
}

}  // namespace
}  // namespace muster::plan
