#include "controller/logs/retention.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "controller/logs/log_keeper.h"
#include "tests/logs/temp_dir.h"

namespace muster::logs {
namespace {

namespace fs = std::filesystem;

class RetentionTest : public testing::Test {
 protected:
  RetentionTest() {
    Put("job.toml", 10);
    Put("events.jsonl", 10'000);
    Put("tiny.log.0.n1", 40'960);
    for (const char* attempt : {"ranks/attempt_0", "ranks/attempt_1"}) {
      Put(std::string(attempt) + "/streams.journal", 10);
      Put(std::string(attempt) + "/0/stdout.log", 8'192);
      Put(std::string(attempt) + "/0/stdout.times", 16);
      Put(std::string(attempt) + "/0/stdout.gaps", 16);
      Put(std::string(attempt) + "/0/stdout.log.000000000000000-100.zst", 4'096);
      Put(std::string(attempt) + "/0/stdout.log.000000000000100-200.zst", 4'096);
      Put(std::string(attempt) + "/0/notes.txt", 10);
    }
  }
  void Put(const std::string& name, size_t bytes) {
    fs::create_directories(fs::path(dir_.File(name)).parent_path());
    WriteFile(dir_.File(name), std::string(bytes, 'x'));
  }
  bool Has(const std::string& name) const { return fs::exists(dir_.File(name)); }
  void Prune(const Retention& retention) {
    const absl::Status status = PruneLogs(dir_.path(), retention, getuid(), getgid());
    EXPECT_TRUE(status.ok()) << status;
  }
  TempDir dir_;
};

TEST_F(RetentionTest, WithoutRulesAllStays) {
  Prune({});
  EXPECT_TRUE(Has("tiny.log.0.n1"));
}

TEST_F(RetentionTest, WhenItsTimeIsOverAllLogsGoAndNothingElse) {
  Prune({.remove_all = true, .keep_bytes = 0});
  EXPECT_FALSE(Has("tiny.log.0.n1"));
  EXPECT_FALSE(Has("ranks/attempt_1/0/stdout.log"));
  EXPECT_FALSE(Has("ranks/attempt_1/0/stdout.times"));
  EXPECT_FALSE(Has("ranks/attempt_0/0/stdout.log.000000000000000-100.zst"));
  for (const char* kept : {"job.toml", "events.jsonl", "ranks/attempt_0/0/notes.txt",
                           "ranks/attempt_1/streams.journal"}) {
    EXPECT_TRUE(Has(kept)) << kept;
  }
  Prune({.remove_all = true, .keep_bytes = 0});
}

TEST_F(RetentionTest, TheDerivedAndTheOldestGoFirst) {
  Prune({.remove_all = false, .keep_bytes = 46'000});
  EXPECT_FALSE(Has("tiny.log.0.n1"));
  EXPECT_FALSE(Has("ranks/attempt_0/0/stdout.log.000000000000000-100.zst"));
  EXPECT_TRUE(Has("ranks/attempt_0/0/stdout.log.000000000000100-200.zst"));
  EXPECT_TRUE(Has("ranks/attempt_0/0/stdout.log"));
  EXPECT_TRUE(Has("ranks/attempt_1/0/stdout.log.000000000000000-100.zst"));
  Prune({.remove_all = false, .keep_bytes = 21'000});
  EXPECT_FALSE(Has("ranks/attempt_0/0/stdout.log"));
  EXPECT_FALSE(Has("ranks/attempt_1/0/stdout.log.000000000000000-100.zst"));
  EXPECT_TRUE(Has("ranks/attempt_1/0/stdout.log.000000000000100-200.zst"));
  EXPECT_TRUE(Has("ranks/attempt_1/0/stdout.log"));
}

TEST_F(RetentionTest, WhatACrashLeftOfAPartGoesWithIt) {
  const std::string part = "ranks/attempt_0/0/stdout.log.000000000000000-100";
  Put(part, 4'096);
  Put(part + ".zst.tmp", 4'096);
  Prune({.remove_all = true, .keep_bytes = 0});
  EXPECT_FALSE(Has(part));
  EXPECT_FALSE(Has(part + ".zst.tmp"));
}

TEST_F(RetentionTest, LinksLeadItNowhere) {
  const TempDir other;
  WriteFile(other.File("stdout.log"), "theirs");
  fs::create_directory_symlink(other.path(), dir_.File("ranks/attempt_1/1"));
  fs::create_symlink(other.File("stdout.log"), dir_.File("x.log.0.n2"));
  Prune({.remove_all = true, .keep_bytes = 0});
  EXPECT_EQ(ReadFile(other.File("stdout.log")), "theirs");
  EXPECT_TRUE(fs::is_symlink(dir_.File("x.log.0.n2")));
}

void Keep(const v1::ListJobsResponse& jobs, int64_t now_ns, bool busy = false) {
  LogKeeper::Prune(jobs, now_ns, [busy](const v1::Job&) { return busy; });
}

TEST_F(RetentionTest, TheKeeperWaitsForTheTimeAndLeavesBusyJobsAlone) {
  v1::ListJobsResponse jobs;
  v1::Job& job = *jobs.add_jobs();
  job.set_output_dir(dir_.path());
  job.set_ended_ns(1'000'000'000);
  job.mutable_spec()->set_submitter_uid(getuid());
  job.mutable_spec()->set_submitter_gid(getgid());
  job.mutable_spec()->mutable_logs()->mutable_keep_for()->set_seconds(60);
  Keep(jobs, 60'000'000'000);
  EXPECT_TRUE(Has("ranks/attempt_0/0/stdout.log"));
  // More than nanoseconds can count is a long time all the same.
  job.mutable_spec()->mutable_logs()->mutable_keep_for()->set_seconds(1'000'000LL * 86'400);
  Keep(jobs, 62'000'000'000);
  EXPECT_TRUE(Has("ranks/attempt_0/0/stdout.log"));
  job.mutable_spec()->mutable_logs()->mutable_keep_for()->set_seconds(60);
  Keep(jobs, 62'000'000'000, /*busy=*/true);
  EXPECT_TRUE(Has("ranks/attempt_0/0/stdout.log"));
  Keep(jobs, 62'000'000'000);
  EXPECT_FALSE(Has("ranks/attempt_0/0/stdout.log"));
}

}  // namespace
}  // namespace muster::logs
