#include "controller/plan/model_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model_testing.h"

namespace muster::plan {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using More = std::vector<std::pair<std::string, std::string>>;

std::vector<std::string> Warnings(const v1::JobSpec& spec) {
  const auto plan = MakePlan(spec);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return {plan->warnings().begin(), plan->warnings().end()};
}

std::vector<std::string> Of8b(const v1::Parallel& parallel, const More& more) {
  return Warnings(Trainer8b("a slots=8\n", parallel, more));
}

TEST(ModelWarnings, RotaryBase) {
  EXPECT_THAT(Of8b(Sized(1, 1, 1, 1, 8), {}), IsEmpty());
  EXPECT_THAT(Of8b(Sized(1, 1, 1, 1, 8), {{"rotary-base", "1000000"}}),
              ElementsAre(AllOf(HasSubstr("rotary-base 1000000"), HasSubstr("500000"),
                                HasSubstr("from nothing"))));
  EXPECT_THAT(
      Of8b(Sized(1, 1, 1, 1, 8), {{"rotary-base", "1000000"}, {"load-hf", "/models/llama3"}}),
      ElementsAre(HasSubstr("this job loads")));
}

TEST(ModelWarnings, SequenceParallelWithoutTp) {
  EXPECT_THAT(Of8b(Sized(1, 1, 1, 1, 8), {{"sequence-parallel", ""}}),
              ElementsAre(HasSubstr("sequence-parallel does nothing with TP 1")));
  EXPECT_THAT(Of8b(Sized(2, 1, 1, 1, 8), {{"sequence-parallel", ""}}), IsEmpty());
}

TEST(ModelWarnings, LongBubble) {
  EXPECT_THAT(Of8b(Sized(1, 4, 1, 1, 0, 4), {}),
              ElementsAre(AllOf(HasSubstr("43 %"), HasSubstr("4 micro-batches"))));
  EXPECT_THAT(Of8b(Sized(1, 4, 1, 1, 0, 16), {}), IsEmpty());
}

TEST(ModelWarnings, ProgramsWhoseCommandIsTheirOwn) {
  v1::JobSpec spec =
      Job("a slots=8\n", {"python", "pretrain_gpt.py", "--num-layers", "30", "--hidden-size", "64",
                          "--num-attention-heads", "4", "--seq-length", "128",
                          "--tensor-model-parallel-size", "4", "--context-parallel-size", "{cp}"});
  *spec.mutable_parallel() = Sized(2, 4, 1);
  EXPECT_THAT(Warnings(spec),
              ElementsAre(AllOf(HasSubstr("--tensor-model-parallel-size 4"), HasSubstr("has 2"),
                                HasSubstr("--tp 4"), HasSubstr("{tp}")),
                          HasSubstr("CUDA_DEVICE_MAX_CONNECTIONS"),
                          HasSubstr("30 layers do not split evenly over PP 4")));
  AddEnv(spec, "CUDA_DEVICE_MAX_CONNECTIONS", "1");
  EXPECT_THAT(Warnings(spec), Not(Contains(HasSubstr("CUDA_DEVICE"))));
}

TEST(DataWarnings, Prefixes) {
  v1::JobSpec spec = Trainer8b("a slots=1\n", Sized(1, 1, 1, 1, 1));
  v1::Flag& flag = *spec.add_flags();
  flag.set_name("data-path");
  for (const char* word : {"0.3", "a/b", "7", "c"}) flag.add_values(word);
  EXPECT_THAT(DataPrefixes(spec), ElementsAre("a/b", "c"));
}

TEST(DataWarnings, TooShort) {
  const v1::JobSpec spec =
      Trainer8b("a slots=1\n", Sized(1, 1, 1, 1, 4),
                {{"data-path", "d"}, {"train-iters", "10"}, {"split", "8,1,1"}});
  const auto plan = MakePlan(spec);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(DataWarnings(spec, *plan, {}), IsEmpty());
  EXPECT_THAT(DataWarnings(spec, *plan, {{"d", 8192}}),
              ElementsAre(HasSubstr("d has 8192 tokens, one sample takes 8192 + 1")));
  // The run takes 10 x 4 x 8192 tokens; eight tenths of the file are for training.
  EXPECT_THAT(DataWarnings(spec, *plan, {{"d", 40 * 8192}}), IsEmpty());
  EXPECT_THAT(DataWarnings(spec, *plan, {{"d", 10 * 8192}}),
              ElementsAre(AllOf(HasSubstr("data too short"), HasSubstr("about 5 times"))));
}

}  // namespace
}  // namespace muster::plan
