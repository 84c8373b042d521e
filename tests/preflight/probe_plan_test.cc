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
  const auto probe = MakeProbe(Spec(), PlanOf({"./train", "--data-path", "a", "0.5", "b"}), 0);
  EXPECT_THAT(probe.readable(), IsEmpty());
  EXPECT_THAT(probe.optional_files(), ElementsAre("/work/a.bin", "/work/a.idx", "/work/a",
                                                  "/work/b.bin", "/work/b.idx", "/work/b"));
}

TEST(MakeProbe, ScriptsOfInterpretersMustBeThere) {
  const auto readable = [](std::initializer_list<const char*> argv) {
    const auto probe = MakeProbe(Spec(), PlanOf(argv), 0);
    return std::vector<std::string>(probe.readable().begin(), probe.readable().end());
  };
  EXPECT_THAT(readable({"python3", "train.py", "--lr", "1"}), ElementsAre("/work/train.py"));
  EXPECT_THAT(readable({"/opt/bin/python3.11", "-u", "-X", "dev", "/x/t.py"}),
              ElementsAre("/x/t.py"));
  EXPECT_THAT(readable({"bash", "-e", "run.sh"}), ElementsAre("/work/run.sh"));
  EXPECT_THAT(readable({"python3", "-m", "pkg.train", "--x", "1"}), IsEmpty());
  EXPECT_THAT(readable({"bash", "-lc", "exec train"}), IsEmpty());
  EXPECT_THAT(readable({"python3", "{rank}.py"}), IsEmpty());
  EXPECT_THAT(readable({"pythonic", "x.py"}), IsEmpty());
  EXPECT_TRUE(MakeProbe(Spec(), PlanOf({"python3.11", "t.py"}), 0).python());
  EXPECT_FALSE(MakeProbe(Spec(), PlanOf({"bash", "t.sh"}), 0).python());
}

TEST(MakeProbe, WordsThatMayBeFiles) {
  const auto probe =
      MakeProbe(Spec(),
                PlanOf({"python3", "train.py", "--config", "conf/a.yaml", "--lr=1e-4", "--url",
                        "http://x/y.z", "--log-dir", "/tmp/logs", "--data=/data/x.bin", "--save",
                        "ckpt", "{rank}/y.bin", "plain"}),
                1);
  EXPECT_THAT(probe.optional_files(), ElementsAre("/work/conf/a.yaml", "/data/x.bin"));
  EXPECT_THAT(probe.writable(), ElementsAre("/work/ckpt"));
}

TEST(MakeProbe, PathsOfAnyBytes) {
  const auto probe = MakeProbe(
      Spec(), PlanOf({"python3", "/\xff.py", "/\xed\xa0\x80/x", "/\xc3\xa4/x", "/\xe4\xb8\xad/x"}),
      1);
  EXPECT_THAT(probe.readable(), IsEmpty());
  EXPECT_THAT(probe.optional_files(), ElementsAre("/\xc3\xa4/x", "/\xe4\xb8\xad/x"));
}

TEST(NeedsDevices, GpusOfTheHostfileAndTheTrainersOwnWord) {
  EXPECT_FALSE(NeedsDevices(PlanOf({"python3", "t.py", "--device", "cuda"}), 0));
  EXPECT_FALSE(NeedsDevices(PlanOf({"muster-train"}), 0));
  EXPECT_TRUE(NeedsDevices(PlanOf({"/opt/muster-train", "--device", "cuda"}), 0));
  EXPECT_FALSE(NeedsDevices(PlanOf({"muster-train", "--device=cuda", "--device=cpu"}), 0));
  auto plan = PlanOf({"true"});
  plan.mutable_nodes(1)->mutable_host()->add_gpus(3);
  EXPECT_FALSE(NeedsDevices(plan, 0));
  EXPECT_TRUE(NeedsDevices(plan, 1));
}

TEST(MakeProbe, PortsOfTheRange) {
  v1::JobSpec spec = Spec();
  spec.mutable_port_range()->set_first(29500);
  spec.mutable_port_range()->set_last(29501);
  const auto plan = PlanOf({"true"});
  EXPECT_EQ(MakeProbe(spec, plan, 0).first_port(), 29500u);
  EXPECT_EQ(MakeProbe(spec, plan, 0).last_port(), 29501u);
  EXPECT_EQ(MakeProbe(spec, plan, 1).first_port(), 0u);
}

TEST(MakeProbe, TemplatesAreNotLookedUp) {
  const auto probe = MakeProbe(Spec(), PlanOf({"muster-train", "--data-path", "/data/{rank}"}), 0);
  EXPECT_THAT(probe.readable(), IsEmpty());
  EXPECT_EQ(MakeProbe(Spec(), PlanOf({"bin/{rank}"}), 0).program(), "");
}

}  // namespace
}  // namespace muster::preflight
