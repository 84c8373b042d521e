#include "controller/cli/deep_check.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster::cli {
namespace {

TEST(DeepSpec, TheSameRanksWithoutTheTrainingProgram) {
  v1::JobSpec spec;
  spec.set_name("train");
  spec.add_command("muster-train");
  spec.add_flags()->set_name("num-layers");
  spec.mutable_parallel()->set_tp(2);
  spec.mutable_parallel()->set_global_batch(1024);
  spec.set_recipe("[job]");
  spec.mutable_inventory()->add_hosts()->set_host("n1");
  spec.set_nproc_per_node(4);
  spec.set_default_transport("openssh:-F x");
  spec.add_env()->set_name("NCCL_IB_HCA");
  spec.add_skip_checks("clock");
  const v1::JobSpec deep = DeepSpec(spec, true);
  EXPECT_EQ(deep.name(), "commtest");
  ASSERT_EQ(deep.command_size(), 2);
  EXPECT_TRUE(deep.command(0).ends_with("/muster-commtest"));
  EXPECT_EQ(deep.command(1), "--json");
  EXPECT_EQ(deep.flags_size(), 0);
  EXPECT_FALSE(deep.has_parallel());
  EXPECT_TRUE(deep.recipe().empty());
  EXPECT_EQ(deep.inventory().hosts(0).host(), "n1");
  EXPECT_EQ(deep.nproc_per_node(), 4u);
  EXPECT_EQ(deep.default_transport(), "openssh:-F x");
  EXPECT_EQ(deep.env(0).name(), "NCCL_IB_HCA");
  EXPECT_EQ(deep.skip_checks(0), "clock");
  EXPECT_EQ(DeepSpec(spec, false).command_size(), 1);
}

TEST(DeepCheckJson, HasTheReportAndTheOutcomeOfTheJob) {
  DeepResult deep;
  deep.report = "{\"odd_hosts\":[\"n3\"]}\n";
  auto json = nlohmann::json::parse(DeepCheckJson(v1::CheckResponse(), deep));
  EXPECT_EQ(json["deep"]["odd_hosts"][0], "n3");
  EXPECT_TRUE(json.contains("findings"));

  deep.report = "Traceback";
  deep.job.set_state(v1::JOB_STATE_FAILED);
  deep.job.mutable_outcome()->set_cause(v1::CAUSE_RANK_FAILED);
  deep.job.mutable_outcome()->set_code(71);
  json = nlohmann::json::parse(DeepCheckJson(v1::CheckResponse(), deep));
  EXPECT_TRUE(json["deep"].is_null());
  EXPECT_EQ(json["code"], 71);
  EXPECT_EQ(json["cause"], "rank_failed");
}

}  // namespace
}  // namespace muster::cli
