#include "controller/logs/end_journal.h"

#include <gtest/gtest.h>

#include "controller/logs/file_io.h"
#include "controller/logs/layout.h"
#include "controller/logs/unfinished.h"
#include "tests/logs/attempt.h"
#include "tests/logs/temp_dir.h"

namespace muster::logs {
namespace {

TEST(EndJournalTest, RemembersEndsAndAbandonedNodes) {
  TempDir dir;
  const std::string path = dir.File("streams.journal");
  {
    EndJournal journal(path);
    ASSERT_TRUE(journal.Recover()->ends.empty());
    ASSERT_TRUE(journal.Append({{3, v1::STREAM_STDOUT, 100}, {3, v1::STREAM_EVENTS, 0}}).ok());
    ASSERT_TRUE(journal.AppendAbandoned(1).ok());
  }
  EXPECT_EQ(ReadFile(path), "end 3 stdout 100\nend 3 events 0\nabandoned 1\n");
  const auto content = EndJournal(path).Recover();
  ASSERT_TRUE(content.ok());
  ASSERT_EQ(content->ends.size(), 2u);
  EXPECT_EQ(content->ends[0].rank, 3u);
  EXPECT_EQ(content->ends[0].stream, v1::STREAM_STDOUT);
  EXPECT_EQ(content->ends[0].bytes, 100u);
  EXPECT_EQ(content->abandoned, std::vector<uint32_t>{1});
}

TEST(EndJournalTest, ATornLineDoesNotCountAndIsReplaced) {
  TempDir dir;
  const std::string path = dir.File("streams.journal");
  WriteFile(path, "end 0 stdout 5\nend 1 stdo");
  EndJournal journal(path);
  EXPECT_EQ(journal.Recover()->ends.size(), 1u);
  ASSERT_TRUE(journal.Append({{1, v1::STREAM_STDERR, 9}}).ok());
  EXPECT_EQ(ReadFile(path), "end 0 stdout 5\nend 1 stderr 9\n");
}

TEST(EndJournalTest, PassesOverUnknownLines) {
  TempDir dir;
  const std::string path = dir.File("streams.journal");
  WriteFile(path,
            "future thing\nend x stdout 5\nend 1 tty 5\nend 1 stdout 5 6\n\nend 2 stderr 8\n");
  const auto content = EndJournal(path).Recover();
  ASSERT_EQ(content->ends.size(), 1u);
  EXPECT_EQ(content->ends[0].rank, 2u);
}

TEST(UnfinishedRanks, AreThoseWithoutAllEndsOnNodesThatAreLeft) {
  const TempDir dir;
  const v1::Plan plan = MakeAttempt(dir.path(), 2, 2).plan;
  EXPECT_TRUE(UnfinishedRanks(dir.path(), 0, plan).empty());  // it never had logs
  ASSERT_TRUE(MakeDirs(AttemptDir(dir.path(), 0)).ok());
  const std::string path = AttemptDir(dir.path(), 0) + "/streams.journal";
  const std::string whole = "end 0 stdout 5\nend 0 stderr 0\nend 0 events 0\n";
  WriteFile(path, whole + "end 1 stdout 7\nend 1 std");
  EXPECT_EQ(UnfinishedRanks(dir.path(), 0, plan), (std::vector<uint32_t>{1, 2, 3}));
  WriteFile(path, whole + "end 1 stdout 7\nabandoned 1\n");
  EXPECT_EQ(UnfinishedRanks(dir.path(), 0, plan), (std::vector<uint32_t>{1}));
}

}  // namespace
}  // namespace muster::logs
