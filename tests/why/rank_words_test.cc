#include "controller/why/rank_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "controller/logs/layout.h"

namespace muster::why {
namespace {

using testing::SizeIs;

TEST(IterationOf, ReadsEventsAndMegatronsLine) {
  EXPECT_EQ(IterationOf(R"({"event":"iteration","rank":0,"iteration":17})"), 17);
  EXPECT_EQ(IterationOf(" [2026-11-29 12:00:00.1] iteration       20/     200 | consumed"), 20);
  EXPECT_EQ(IterationOf("iteration x/y"), std::nullopt);
  EXPECT_EQ(IterationOf(R"({"iteration":"x"})"), std::nullopt);
  EXPECT_EQ(IterationOf("step 3"), std::nullopt);
  EXPECT_EQ(IterationOf(""), std::nullopt);
}

class ReadWordsTest : public testing::Test {
 protected:
  ReadWordsTest() {
    char name[] = "/tmp/muster-words-XXXXXX";
    job_.set_output_dir(mkdtemp(name));
    job_.mutable_spec()->set_submitter_uid(getuid());
    job_.mutable_spec()->set_submitter_gid(getgid());
    job_.mutable_plan()->set_world(2);
    job_.mutable_plan()->add_nodes()->mutable_host()->set_host("n1");
    for (uint32_t i = 0; i < 2; ++i) job_.mutable_plan()->add_ranks()->set_rank(i);
  }
  ~ReadWordsTest() override { std::filesystem::remove_all(job_.output_dir()); }
  void Write(uint32_t rank, v1::Stream stream, const std::string& text) {
    const std::string folder = logs::RankDir(job_.output_dir(), 0, rank);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/" + logs::LogName(stream)) << text;
  }

  v1::Job job_;
};

TEST_F(ReadWordsTest, LastLinesTailsAndEvents) {
  Write(0, v1::STREAM_STDOUT, "a\nb\n 10%\r 90%\r100%\r\n");
  Write(1, v1::STREAM_STDERR, "x\nValueError: y\n\n");
  Write(1, v1::STREAM_EVENTS,
        "{\"event\":\"iteration\",\"iteration\":4}\n"
        "{\"event\":\"error\",\"kind\":\"data\",\"message\":\"cut\"}\n");
  const Words words = ReadWords(job_, {1});
  ASSERT_TRUE(words.contains(0));
  EXPECT_EQ(words.at(0).last->text, "100%");
  EXPECT_THAT(words.at(0).tail, SizeIs(0));
  EXPECT_EQ(words.at(1).iteration, 4);
  EXPECT_EQ(words.at(1).event_error, "data: cut");
  EXPECT_THAT(words.at(1).tail, SizeIs(3));
  EXPECT_TRUE(words.at(1).tail[1].err);
  EXPECT_EQ(words.at(1).tail[1].text, "ValueError: y");
}

TEST_F(ReadWordsTest, NothingThereIsNothing) {
  EXPECT_TRUE(ReadWords(job_, {0}).empty());
  EXPECT_TRUE(ReadWords({}, {}).empty());
}

}  // namespace
}  // namespace muster::why
