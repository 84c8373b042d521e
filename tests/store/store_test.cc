#include "controller/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "controller/store/reader.h"
#include "controller/store/schema.h"
#include "tests/store/sample.h"
#include "tests/store/temp_dir.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(Store, WhatIsCommittedIsReadBack) {
  TempDir dir;
  auto store = store::Store::Open(dir.path());
  ASSERT_TRUE(store.ok()) << store.status();
  const auto job = SampleJob(1);
  store::Batch batch;
  batch.jobs = {job};
  batch.ranks = {SampleRank(1, 1, v1::RANK_STATE_RUNNING),
                 SampleRank(1, 0, v1::RANK_STATE_PREPARED)};
  batch.events = {{1, SampleEvent(1)}, {1, SampleEvent(2)}};
  batch.node_history = {{"n1", 5, v1::LINK_STATE_UP, "up"},
                        {"n2", 6, v1::LINK_STATE_LOST, "refused"}};
  ASSERT_TRUE((*store)->Commit(batch).ok());

  auto reader = store::Reader::Open(dir.path());
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto read = (*reader)->GetJob(1);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->name, "train");
  EXPECT_EQ(read->state, v1::JOB_STATE_RUNNING);
  EXPECT_TRUE(read->open);
  EXPECT_EQ(read->started_ns, 200);
  EXPECT_EQ(read->master_port, 29500u);
  EXPECT_EQ(read->output_dir, "/out/train");
  EXPECT_EQ(read->spec.command(0), "python3");
  EXPECT_EQ(read->plan->world(), 2u);
  EXPECT_FALSE(read->stop.has_value());
  EXPECT_FALSE(read->outcome.has_value());
  EXPECT_EQ(read->grace_ms, 2000);
  EXPECT_EQ(read->save_signal, 15u);
  EXPECT_EQ(read->last_sequence, 2u);
  ASSERT_THAT(read->nodes, SizeIs(2));
  EXPECT_EQ(read->nodes[0].host.host(), "n1");
  EXPECT_EQ(read->nodes[0].clock_offset_ns, -5);
  EXPECT_FALSE(read->nodes[0].end.has_value());
  EXPECT_FALSE(read->nodes[0].unverified.has_value());
  EXPECT_EQ(read->nodes[1].generation, 3u);
  EXPECT_EQ(read->nodes[1].goal, v1::GOAL_STOPPED);
  EXPECT_EQ(read->nodes[1].unverified, "it can't be reached");
  EXPECT_TRUE(read->nodes[1].end->verified());
  EXPECT_FALSE(read->nodes[1].clock_offset_ns.has_value());
  ASSERT_THAT(read->ranks, SizeIs(2));
  EXPECT_EQ(read->ranks[0].state(), v1::RANK_STATE_PREPARED);
  EXPECT_THAT(*(*reader)->NodeHistory("n2"), SizeIs(1));
}

TEST(Store, LaterCommitsReplaceEarlierRows) {
  TempDir dir;
  auto store = store::Store::Open(dir.path());
  ASSERT_TRUE(store.ok());
  store::Batch batch;
  batch.jobs = {SampleJob(1)};
  batch.ranks = {SampleRank(1, 0, v1::RANK_STATE_RUNNING)};
  ASSERT_TRUE((*store)->Commit(batch).ok());
  batch.jobs[0].state = v1::JOB_STATE_FAILED;
  batch.jobs[0].outcome.emplace().set_code(137);
  batch.jobs[0].nodes[0].generation = 9;
  batch.ranks = {SampleRank(1, 0, v1::RANK_STATE_EXITED)};
  batch.closed = {1};
  ASSERT_TRUE((*store)->Commit(batch).ok());
  auto reader = store::Reader::Open(dir.path());
  const auto job = (*reader)->GetJob(1);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->outcome->code(), 137);
  EXPECT_EQ(job->nodes[0].generation, 9u);
  EXPECT_EQ(job->ranks[0].state(), v1::RANK_STATE_EXITED);
  EXPECT_FALSE(job->open);
  EXPECT_THAT(*(*reader)->OpenJobs(), SizeIs(0));
}

TEST(Store, ABatchIsAllOrNothing) {
  TempDir dir;
  auto store = store::Store::Open(dir.path());
  ASSERT_TRUE(store.ok());
  store::Batch batch;
  batch.jobs = {SampleJob(1)};
  batch.events = {{1, SampleEvent(1)}, {1, SampleEvent(1)}};  // the same sequence twice
  EXPECT_FALSE((*store)->Commit(batch).ok());
  auto reader = store::Reader::Open(dir.path());
  EXPECT_EQ((*reader)->GetJob(1).status().code(), absl::StatusCode::kNotFound);
  batch.events.pop_back();
  EXPECT_TRUE((*store)->Commit(batch).ok()) << "the store works on";
}

TEST(Store, TheIdentityStays) {
  TempDir dir;
  std::string id;
  {
    auto store = store::Store::Open(dir.path());
    ASSERT_TRUE(store.ok());
    id = (*store)->controller_id();
    EXPECT_THAT(id, SizeIs(32));
  }
  EXPECT_EQ((*store::Store::Open(dir.path()))->controller_id(), id);
  TempDir other;
  EXPECT_NE((*store::Store::Open(other.path()))->controller_id(), id);
}

TEST(Store, TheFileIsPrivate) {
  TempDir dir;
  ASSERT_TRUE(store::Store::Open(dir.path()).ok());
  struct stat status {};
  ASSERT_EQ(::stat(store::Store::PathIn(dir.path()).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST(Store, AFileThatIsNoDatabaseSaysWhatToDo) {
  TempDir dir;
  const std::string path = store::Store::PathIn(dir.path());
  std::ofstream(path) << std::string(8192, 'x');
  const auto store = store::Store::Open(dir.path());
  EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(store.status().message()),
              HasSubstr("mv " + path + " " + path + ".damaged"));
}

TEST(Store, ADamagedPageIsFound) {
  TempDir dir;
  const std::string path = store::Store::PathIn(dir.path());
  {
    auto store = store::Store::Open(dir.path());
    ASSERT_TRUE(store.ok());
    store::Batch batch;
    for (uint64_t i = 1; i <= 200; ++i) batch.jobs.push_back(SampleJob(i, std::string(200, 'n')));
    ASSERT_TRUE((*store)->Commit(batch).ok());
  }
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(0, std::ios::end);
    const auto size = static_cast<int64_t>(file.tellp());
    for (int64_t page = 4096 * 3; page + 4096 <= size; page += 4096) {
      file.seekp(page);
      file.write(std::string(64, '\xff').data(), 64);
    }
  }
  EXPECT_EQ(store::Store::Open(dir.path()).status().code(), absl::StatusCode::kDataLoss);
}

TEST(Store, ANewerSchemaIsRefused) {
  TempDir dir;
  ASSERT_TRUE(store::Store::Open(dir.path()).ok());
  {
    auto db =
        store::Database::Open(store::Store::PathIn(dir.path()), store::Database::Mode::kReadWrite);
    ASSERT_TRUE(db.ok());
    ASSERT_TRUE(
        db->Execute("PRAGMA user_version=" + std::to_string(store::LatestSchema() + 1)).ok());
  }
  const auto store = store::Store::Open(dir.path());
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("newer Muster"));
}

TEST(Store, AMissingFolderIsNamed) {
  const auto store = store::Store::Open("/nonexistent/folder");
  EXPECT_THAT(std::string(store.status().message()),
              HasSubstr("open /nonexistent/folder/muster.db: No such file"));
}

}  // namespace
}  // namespace muster::testing
