#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan_testing.h"

namespace muster::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::JobSpec Trainer(const std::vector<std::string>& arguments, const v1::Parallel& parallel) {
  v1::JobSpec spec = Job("a slots=4\n", {"/opt/muster/bin/muster-train"});
  for (const std::string& argument : arguments) spec.add_command(argument);
  *spec.mutable_parallel() = parallel;
  return spec;
}

std::vector<std::string> PlanArgv(const v1::JobSpec& spec) {
  const auto plan = MakePlan(spec);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return {plan->argv().begin(), plan->argv().end()};
}

TEST(Trainer, GetsSizesInMegatronsNamesAndThenItsFlags) {
  v1::JobSpec spec = Trainer({"--mock-data"}, Sized(2, 1, 1, 1, 8));
  v1::Flag& bare = *spec.add_flags();
  bare.set_name("bf16");
  v1::Flag& list = *spec.add_flags();
  list.set_name("data-path");
  list.add_values("0.5");
  list.add_values("a");
  EXPECT_THAT(PlanArgv(spec),
              ElementsAre("/opt/muster/bin/muster-train", "--mock-data",
                          "--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size",
                          "1", "--context-parallel-size", "1", "--micro-batch-size", "1",
                          "--global-batch-size", "8", "--bf16", "--data-path", "0.5", "a"));
}

TEST(Trainer, VirtualStagesOnlyWhenThereAreSome) {
  const auto argv = PlanArgv(Trainer({}, Sized(1, 2, 1, 1, 0, 4, 2)));
  EXPECT_THAT(argv, testing::Contains("--num-virtual-stages-per-pipeline-rank"));
}

// A command that runs by itself or under torchrun runs unchanged under muster.
TEST(Trainer, SizesOfTheCommandAreTaken) {
  const v1::JobSpec spec = Trainer(
      {"--micro-batch-size", "2", "--global-batch-size=16", "--tensor-model-parallel-size", "2"},
      Sized(0, 0, 0));
  const auto plan = MakePlan(spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->tp(), 2U);
  EXPECT_EQ(plan->num_microbatches(), 4U);
  EXPECT_THAT(PlanArgv(spec),
              ElementsAre(HasSubstr("muster-train"), "--micro-batch-size", "2",
                          "--global-batch-size=16", "--tensor-model-parallel-size", "2",
                          "--pipeline-model-parallel-size", "1", "--context-parallel-size", "1"));
}

TEST(Trainer, TwoPlacesMustAgree) {
  EXPECT_TRUE(MakePlan(Trainer({"--tensor-model-parallel-size", "2"}, Sized(2, 1, 1, 1, 8))).ok());
  EXPECT_THAT(MakePlan(Trainer({"--tensor-model-parallel-size", "4"}, Sized(2, 1, 1, 1, 8)))
                  .status()
                  .message(),
              HasSubstr("--tensor-model-parallel-size 4 in the command, but tp is 2"));
  EXPECT_THAT(MakePlan(Trainer({"--micro-batch-size"}, Sized(0, 0, 0, 0, 8))).status().message(),
              HasSubstr("--micro-batch-size in the command needs a whole number"));
  v1::JobSpec spec = Trainer({}, Sized(1, 1, 1, 1, 8));
  spec.add_flags()->set_name("global-batch-size");
  EXPECT_THAT(MakePlan(spec).status().message(), HasSubstr("write global_batch in [parallel]"));
}

TEST(Trainer, NeedsABatch) {
  EXPECT_THAT(MakePlan(Trainer({}, Sized(1, 1, 1))).status().message(),
              HasSubstr("muster-train needs micro_batch"));
}

}  // namespace
}  // namespace muster::plan
