#include "controller/preflight/probe_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::preflight {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

v1::JobSpec Spec() {
  v1::JobSpec spec;
  spec.set_working_dir("/work");
  return spec;
}

v1::Plan PlanOf(std::initializer_list<const char*> argv) {
  v1::Plan plan;
  plan.add_nodes()->set_data_addr("10.0.0.1");
  plan.add_nodes()->set_data_addr("10.0.0.2");
  for (const char* word : argv) plan.add_argv(word);
  return plan;
}

TEST(MakeProbe, OnlyTheHeadHoldsAPort) {
  const auto plan = PlanOf({"python3", "train.py"});
  const auto head = MakeProbe(Spec(), plan, 0);
  EXPECT_TRUE(head.want_port());
  EXPECT_EQ(head.port_address(), "10.0.0.1");
  EXPECT_EQ(head.program(), "python3");
  EXPECT_EQ(head.working_dir(), "/work");
  EXPECT_FALSE(MakeProbe(Spec(), plan, 1).want_port());
}

TEST(MakeProbe, TrainerFilesFollowItsFlags) {
  const auto plan = PlanOf({"/opt/bin/muster-train", "--data-path", "0.3", "a", "0.7", "/data/b",
                            "--tokenizer-model=tok.model", "--lr", "3e-4", "--split", "99,1,0",
                            "--valid-data-path", "v"});
  EXPECT_THAT(MakeProbe(Spec(), plan, 1).readable(),
              ElementsAre("/work/a.bin", "/work/a.idx", "/data/b.bin", "/data/b.idx",
                          "/work/tok.model", "/work/v.bin", "/work/v.idx"));
}

TEST(MakeProbe, OtherProgramsKeepTheMeaningOfTheirFlags) {
  EXPECT_THAT(MakeProbe(Spec(), PlanOf({"python3", "--data-path", "a"}), 0).readable(), IsEmpty());
}

TEST(MakeProbe, TemplatesAreNotLookedUp) {
  const auto probe = MakeProbe(Spec(), PlanOf({"muster-train", "--data-path", "/data/{rank}"}), 0);
  EXPECT_THAT(probe.readable(), IsEmpty());
  EXPECT_EQ(MakeProbe(Spec(), PlanOf({"bin/{rank}"}), 0).program(), "");
}

}  // namespace
}  // namespace muster::preflight
