#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/why/why.h"

namespace muster::why {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kSecond = 1'000'000'000;

// Two nodes with two ranks each; rank 2 was killed by SIGKILL, the rest by our stop.
v1::Job KilledJob() {
  v1::Job job;
  job.set_id("3");
  job.mutable_plan()->set_name("tiny");
  job.set_state(v1::JOB_STATE_FAILED);
  job.set_started_ns(1 * kSecond);
  job.set_ended_ns(13 * kSecond);
  job.mutable_outcome()->set_cause(v1::CAUSE_RANK_FAILED);
  job.mutable_outcome()->set_rank(2);
  job.mutable_outcome()->set_code(137);
  for (uint32_t i = 0; i < 4; ++i) {
    v1::RankView& rank = *job.add_ranks();
    rank.set_host(i < 2 ? "n1" : "n2");
    rank.mutable_status()->set_rank(i);
    rank.mutable_status()->set_pid(100 + i);
    rank.mutable_status()->set_state(i == 2 ? v1::RANK_STATE_EXITED : v1::RANK_STATE_KILLED);
    rank.mutable_status()->mutable_exit()->set_signal(i == 2 ? 9 : 15);
    rank.mutable_status()->mutable_exit()->set_code(i == 2 ? 137 : 143);
    rank.set_ended_ns(10 * kSecond + i);
  }
  for (const char* host : {"n1", "n2"}) {
    v1::NodeEnd& end = *job.add_ends();
    end.set_host(host);
    end.set_clean(true);
    end.mutable_report()->set_verified(true);
    end.mutable_report()->mutable_kernel();
  }
  return job;
}

TEST(Explain, SeparatesTheCauseFromWhatWeEnded) {
  Words words;
  words[2].tail = {{false, "step 7"}, {true, "going down"}};
  const Why why = Explain(KilledJob(), words, {});
  ASSERT_THAT(why.causes, SizeIs(1));
  EXPECT_EQ(why.causes[0].rank, 2u);
  EXPECT_EQ(why.causes[0].host, "n2");
  EXPECT_EQ(why.causes[0].end, "was killed by SIGKILL (9); Muster did not send it");
  EXPECT_EQ(why.causes[0].error, "going down");
  EXPECT_EQ(why.causes[0].error_source, "its last lines");
  EXPECT_THAT(why.causes[0].lines, SizeIs(2));
  EXPECT_THAT(why.followed, IsEmpty());
  ASSERT_THAT(why.others, SizeIs(1));
  EXPECT_THAT(why.others[0].ranks, ElementsAre(0, 1, 3));
  EXPECT_EQ(why.others[0].doing, "running, ended by us (SIGTERM)");
  EXPECT_EQ(why.duration_ns, 12 * kSecond);
}

TEST(Explain, SaysThatTheKernelKilledNobody) {
  EXPECT_THAT(Explain(KilledJob(), {}, {}).kernel_notes,
              ElementsAre("no out-of-memory kill in the kernel's log of n2 at that time"));
  v1::Job job = KilledJob();
  job.mutable_ends(1)->mutable_report()->mutable_kernel()->set_error("Operation not permitted");
  EXPECT_THAT(Explain(job, {}, {}).kernel_notes,
              ElementsAre("the kernel's log of n2 could not be read: Operation not permitted"));
  job.mutable_ends(1)->mutable_report()->clear_kernel();
  EXPECT_THAT(Explain(job, {}, {}).kernel_notes, IsEmpty());
}

TEST(Explain, ShowsTheKernelsEvidenceWithItsRank) {
  v1::Job job = KilledJob();
  auto& fault = *job.mutable_ends(1)->mutable_report()->mutable_kernel()->add_faults();
  fault.set_kind("oom");
  fault.set_pid(102);
  fault.set_text("Out of memory: Killed process 102 (python)");
  const Why why = Explain(job, {}, {});
  ASSERT_THAT(why.kernel, SizeIs(1));
  EXPECT_EQ(why.kernel[0].host, "n2");
  EXPECT_EQ(why.kernel[0].rank, 2u);
  EXPECT_THAT(why.kernel_notes, IsEmpty());
}

TEST(Explain, TheErrorFileComesBeforeTheEventBeforeTheLines) {
  v1::Job job = KilledJob();
  Words words;
  words[2].tail = {{true, "RuntimeError: of the lines"}};
  words[2].event_error = "data: of the event";
  EXPECT_EQ(Explain(job, words, {}).causes[0].error, "data: of the event");
  EXPECT_EQ(Explain(job, words, {}).causes[0].error_source, "its error event");
  job.mutable_ranks(2)->mutable_status()->mutable_exit()->set_error_record(
      R"({"message": {"message": "ValueError: of the file", "extraInfo": {"py_callstack": "Traceback\n  File x\nValueError: of the file"}}})");
  const Why why = Explain(job, words, {});
  EXPECT_EQ(why.causes[0].error, "ValueError: of the file");
  EXPECT_EQ(why.causes[0].error_source, "its error file");
  EXPECT_TRUE(why.causes[0].call_stack);
  EXPECT_THAT(why.causes[0].lines, SizeIs(3));
}

TEST(Explain, UndecidableShowsAllThatMayHaveBeenFirst) {
  v1::Job job = KilledJob();
  job.mutable_outcome()->add_undecided(3);
  job.mutable_ranks(3)->mutable_status()->set_state(v1::RANK_STATE_EXITED);
  const Why why = Explain(job, {}, {});
  ASSERT_THAT(why.causes, SizeIs(2));
  EXPECT_EQ(why.causes[1].rank, 3u);
  EXPECT_THAT(why.others[0].ranks, ElementsAre(0, 1));
}

TEST(Explain, LaterFailuresAreToldWithTheirTime) {
  v1::Job job = KilledJob();
  v1::RankStatus& later = *job.mutable_ranks(0)->mutable_status();
  later.set_state(v1::RANK_STATE_EXITED);
  later.mutable_exit()->set_signal(0);
  later.mutable_exit()->set_code(71);
  job.mutable_ranks(0)->set_ended_ns(job.ranks(2).ended_ns() + kSecond / 2);
  const Why why = Explain(job, {}, {});
  ASSERT_THAT(why.followed, SizeIs(1));
  EXPECT_THAT(why.followed[0].ranks, ElementsAre(0));
  EXPECT_EQ(why.followed[0].doing, "exited with code 71");
  EXPECT_NEAR(why.followed[0].after_s->first, 0.5, 1e-9);
}

TEST(Explain, NamesTheHolderOfAPortAndItsRank) {
  v1::Job job = KilledJob();
  auto& exit = *job.mutable_ranks(2)->mutable_status()->mutable_exit();
  exit.add_port_holders("10.0.0.2:29500 is in use by pid 103 (python x.py)");
  exit.add_port_holders("10.0.0.2:80 is in use by a process of uid 33");
  EXPECT_THAT(
      Explain(job, {}, {}).causes[0].ports,
      ElementsAre("10.0.0.2:29500 is in use by pid 103 (python x.py), which is rank 3 of this job",
                  "10.0.0.2:80 is in use by a process of uid 33"));
}

TEST(Explain, OtherCausesHaveNoCauseRank) {
  v1::Job job = KilledJob();
  job.mutable_outcome()->clear_rank();
  job.mutable_outcome()->set_cause(v1::CAUSE_NODE_LOST);
  job.mutable_outcome()->set_message("the link to n2 was broken");
  const Why why = Explain(job, {}, {});
  EXPECT_THAT(why.causes, IsEmpty());
  EXPECT_EQ(why.message, "the link to n2 was broken");
  EXPECT_THAT(why.others, SizeIs(2));
}

Rule MakeRule(const std::string& name, const std::string& regex) {
  Rule rule;
  rule.name = name;
  rule.place = "r.toml:" + name;
  rule.patterns.push_back(*Pattern::Compile(regex));
  rule.cause = name + " {1} on {host}";
  return rule;
}

TEST(Explain, TheErrorsOwnWordsComeFirst) {
  RuleSet rules;
  rules.rules.push_back(MakeRule("warning", "be (careful)"));
  rules.rules.push_back(MakeRule("error", "ValueError: (\\w+)"));
  Words words;
  words[2].tail = {{true, "be careful"}, {true, "ValueError: shape"}};
  const Why why = Explain(KilledJob(), words, rules);
  ASSERT_THAT(why.hints, SizeIs(2));
  EXPECT_EQ(why.hints[0].cause, "error shape on n2");
  EXPECT_EQ(why.hints[0].found, "ValueError: shape");
  EXPECT_EQ(why.hints[1].cause, "warning careful on n2");
}

TEST(Explain, ARuleThatTakesTooLongIsARemarkAndTheOthersCount) {
  RuleSet rules;
  rules.rules.push_back(MakeRule("slow", "(x+x+)+[yz]"));
  rules.rules.push_back(MakeRule("good", "(xx)"));
  Words words;
  words[2].tail = {{true, std::string(200, 'x')}};
  const Why why = Explain(KilledJob(), words, rules);
  ASSERT_THAT(why.hints, SizeIs(1));
  EXPECT_EQ(why.hints[0].rule, "good");
  EXPECT_THAT(why.remarks, ElementsAre(HasSubstr("r.toml:slow: the search was given up")));
}

}  // namespace
}  // namespace muster::why
