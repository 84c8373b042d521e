#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "controller/hostfile/hostfile.h"
#include "controller/plan/planner.h"
#include "controller/plan/recipe.h"
#include "controller/plan/templates.h"
#include "plan_testing.h"

// Every recipe and hostfile that the project ships can be planned, and docs/recipe.md tells of all
// that ranks get.

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
      {"tiny_cpu.toml", "two_local_workers"},      {"torchrun_any.toml", "two_local_workers"},
      {"llama3_8b_fp8.toml", "two_nodes_16_gpus"}, {"llama3_70b.toml", "eight_nodes_64_gpus"},
      {"llama3_405b.toml", "128_nodes_1024_gpus"}, {"two_nodes_16_gpus.toml", "two_nodes_16_gpus"},
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

TEST(Shipped, TheDocsNameEveryTemplateAndVariable) {
  std::ostringstream docs;
  docs << std::ifstream(Source() / "docs/recipe.md").rdbuf();
  v1::JobSpec spec = Job("a gpus=0,1 iface=eth0\n", {"muster-train"});
  *spec.mutable_parallel() = Sized(1, 1, 1, 1, 2);
  const auto plan = MakePlan(spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Launch launch = {0, 29500, "run", "/checkpoint"};
  for (const auto& [name, value] : ValuesFor(*plan, 0, launch)) {
    EXPECT_NE(docs.str().find("`{" + name + "}`"), std::string::npos) << name;
  }
  const auto rank = MakeRankSpec(spec, *plan, 0, launch);
  ASSERT_TRUE(rank.ok()) << rank.status();
  for (const v1::EnvVar& variable : rank->env()) {
    EXPECT_NE(docs.str().find(variable.name()), std::string::npos) << variable.name();
  }
}

}  // namespace
}  // namespace muster::plan
