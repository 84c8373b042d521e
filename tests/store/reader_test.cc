#include "controller/store/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/store/store.h"
#include "tests/store/sample.h"
#include "tests/store/temp_dir.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class ReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = *store::Store::Open(dir_.path());
    reader_ = *store::Reader::Open(dir_.path());
  }
  void Commit(const store::Batch& batch) { ASSERT_TRUE(store_->Commit(batch).ok()); }
  std::string ErrorOf(const std::string& reference) {
    return std::string(reader_->FindJob(reference).status().message());
  }

  TempDir dir_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<store::Reader> reader_;
};

TEST_F(ReaderTest, JobsAreFoundByNumberNameAndLast) {
  EXPECT_EQ(ErrorOf("last"), "there are no jobs yet");
  store::Batch batch;
  batch.jobs = {SampleJob(1, "llama"), SampleJob(2, "llama"), SampleJob(3, "eval")};
  Commit(batch);
  EXPECT_EQ(*reader_->FindJob("1"), 1u);
  EXPECT_EQ(*reader_->FindJob("llama"), 2u) << "the newest of that name";
  EXPECT_EQ(*reader_->FindJob("last"), 3u);
  EXPECT_EQ(ErrorOf("lama"), "there is no job named 'lama'; did you mean 'llama'?");
  EXPECT_EQ(ErrorOf("7"), "there is no job 7; the last one is 3");
  EXPECT_EQ(ErrorOf("99999999999999999999999"), "there is no job named '99999999999999999999999'");
  EXPECT_EQ(ErrorOf(""), "there is no job named ''");
  EXPECT_EQ(*reader_->LastJobId(), 3u);
}

TEST_F(ReaderTest, ListIsNewestFirstAndKnowsTheRecent) {
  store::Batch batch;
  batch.jobs = {SampleJob(1), SampleJob(2), SampleJob(3)};
  batch.jobs[0].ended_ns = 1000;
  batch.jobs[1].ended_ns = 5000;
  Commit(batch);
  const auto all = reader_->ListJobs(0);
  ASSERT_THAT(*all, SizeIs(3));
  EXPECT_EQ((*all)[0].id, 3u);
  const auto recent = reader_->ListJobs(2000);
  ASSERT_THAT(*recent, SizeIs(2)) << "active ones and those that ended since";
  EXPECT_EQ((*recent)[1].id, 2u);
}

TEST_F(ReaderTest, EventsFromAnyPoint) {
  store::Batch batch;
  batch.jobs = {SampleJob(1)};
  for (uint64_t i = 1; i <= 10; ++i) batch.events.push_back({1, SampleEvent(i)});
  Commit(batch);
  EXPECT_THAT(*reader_->EventsAfter(1, 0), SizeIs(10));
  const auto tail = reader_->EventsAfter(1, 8);
  ASSERT_THAT(*tail, SizeIs(2));
  EXPECT_EQ((*tail)[0].sequence(), 9u);
  EXPECT_THAT(*reader_->EventsAfter(1, ~uint64_t{0}), SizeIs(0));
}

TEST_F(ReaderTest, ADamagedBlobIsAnErrorNotACrash) {
  store::Batch batch;
  batch.jobs = {SampleJob(1)};
  Commit(batch);
  auto db =
      store::Database::Open(store::Store::PathIn(dir_.path()), store::Database::Mode::kReadWrite);
  ASSERT_TRUE(db->Execute("UPDATE jobs SET plan=x'ffffffff'").ok());
  const auto job = reader_->GetJob(1);
  EXPECT_EQ(job.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(job.status().message()), HasSubstr("damaged plan of job 1"));
}

}  // namespace
}  // namespace muster::testing
