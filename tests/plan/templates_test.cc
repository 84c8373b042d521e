#include "controller/plan/templates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "plan_testing.h"

namespace muster::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The word as rank 3 of two hosts with two slots gets it.
std::string Filled(const std::string& word) {
  v1::JobSpec spec = Job("10.0.0.1 slots=2\n10.0.0.2 slots=2\n", {"x", word});
  *spec.mutable_parallel() = Sized(2, 1, 1, 1, 8);
  const auto plan = MakePlan(spec);
  if (!plan.ok()) return std::string(plan.status().message());
  return MakeRankSpec(spec, *plan, 3, {1, 29555, "run-1", "/c/iter_5"})->argv(1);
}

TEST(Templates, AreFilled) {
  EXPECT_EQ(Filled("{rank}/{world} {local_rank}/{local_world} {node_rank}/{nnodes}"),
            "3/4 1/2 1/2");
  EXPECT_EQ(Filled("{tp} {pp} {cp} {dp} {vp} {mbs} {num_microbatches} {gbs}"), "2 1 1 2 1 1 4 8");
  EXPECT_EQ(Filled("{tp_rank} {pp_rank} {cp_rank} {dp_rank}"), "1 0 0 1");
  EXPECT_EQ(Filled("{head_addr}:{master_port} {node_addr} {host}"),
            "10.0.0.1:29555 10.0.0.2 10.0.0.2");
  EXPECT_EQ(Filled("{job_name} {attempt} {run_id} {last_checkpoint}"), "x 1 run-1 /c/iter_5");
  EXPECT_EQ(Filled("--out=log.{rank}.txt"), "--out=log.3.txt");
}

TEST(Templates, OtherBracesPassByteForByte) {
  for (const char* word : {R"({"a":1})", R"({"a":{"b":[1,2]}})",
                           "{}",         "{",
                           "}",          "{{",
                           "}}",         "{{ messages }}",
                           "{epoch}",    "ckpt_{step:06d}",
                           "{i}",        "${RANK}",
                           "${rank}",    "$${rank}",
                           "{a,b}",      "{1..4}",
                           "{ rank }",   "{{x}}",
                           "{%",         "{rank",
                           "rank}",      "{\"rank\"}",
                           "${{rank}}"}) {
    EXPECT_EQ(Filled(word), word);
  }
}

TEST(Templates, DoubleBracesEscape) {
  EXPECT_EQ(Filled("{{rank}}"), "{rank}");
  EXPECT_EQ(Filled("{{rank}"), "{rank}");
  EXPECT_EQ(Filled(R"({"r":{rank}})"), R"({"r":3})");
  EXPECT_EQ(Filled(R"({"r":{"s":{rank}}})"), R"({"r":{"s":3}})");
  EXPECT_EQ(Filled("{{rank}}{rank}"), "{rank}3");
}

TEST(Templates, NearlyOursIsAnError) {
  EXPECT_THAT(Filled("{locl_rank}"), HasSubstr("did you mean {local_rank}?"));
  EXPECT_THAT(Filled("{LOCAL_RANK}"), HasSubstr("did you mean {local_rank}?"));
  EXPECT_THAT(Filled("{local-rank}"), HasSubstr("did you mean {local_rank}?"));
  EXPECT_THAT(Filled("{masterport}"), HasSubstr("did you mean {master_port}?"));
  EXPECT_THAT(Filled("{wolrd}"), HasSubstr("did you mean {world}?"));
  EXPECT_THAT(Filled("{Rank}"), HasSubstr("write {{Rank}}"));
  EXPECT_EQ(Filled("{{Rank}}"), "{Rank}");
}

TEST(Templates, EmptyCheckpointIsEmptyText) {
  const v1::JobSpec spec =
      Job("a slots=1\n", {"x", "{last_checkpoint}", "--load={last_checkpoint}"});
  const auto rank = MakeRankSpec(spec, *MakePlan(spec), 0, SomeLaunch());
  EXPECT_THAT(Argv(*rank), ElementsAre("x", "", "--load="));
}

// Text without one of our names in braces is never touched.
RC_GTEST_PROP(TemplatesProperty, ForeignTextPasses, ()) {
  const auto parts = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("{", "}", "\"", ":", "x", "7", " ", "$", "'", "[", "]", "\\",
                                    "\xC3\xA9", "{}", "{{", "}}", "{x}"));
  std::string text;
  for (const std::string& part : parts) text += part;
  RC_ASSERT(CheckTemplates(text).ok());
  RC_ASSERT(FillTemplates(text, {{"rank", "3"}}) == text);
}

}  // namespace
}  // namespace muster::plan
