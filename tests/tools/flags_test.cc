#include "trainer/tools/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FlagsTest : public ::testing::Test {
 protected:
  FlagsTest() {
    flags_.Switch("--append-eod", &eod_, "");
    flags_.Text("--input", &input_, "");
    flags_.Integer("--workers", &workers_, 1, "");
    flags_.Integer("--percent", &percent_, 0, 100, "");
    flags_.List("--json-keys", &keys_, "");
  }

  std::string Error(const std::vector<std::string>& words) const {
    try {
      flags_.Parse(words);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "(no UsageError)";
  }

  Flags flags_;
  bool eod_ = false;
  std::string input_;
  int64_t workers_ = 0;
  int64_t percent_ = 0;
  std::vector<std::string> keys_;
};

TEST_F(FlagsTest, ReadsEveryKind) {
  flags_.Parse({"--json-keys", "a", "b", "--append-eod", "--input=x=y", "--workers", "3"});
  EXPECT_THAT(keys_, ElementsAre("a", "b"));
  EXPECT_TRUE(eod_);
  EXPECT_EQ(input_, "x=y");
  EXPECT_EQ(workers_, 3);
}

TEST_F(FlagsTest, FlagsOfMegatronThatChangeNothingOrAreRefused) {
  flags_.NoEffect("--pad", true, "no effect");
  flags_.Refused("--old", "is gone: leave it out");
  EXPECT_EQ(Error({"--pad", "128", "--append-eod"}), "(no UsageError)");
  EXPECT_TRUE(eod_);
  EXPECT_EQ(Error({"--old"}), "--old is gone: leave it out");
  EXPECT_EQ(Error({"--old", "1", "2"}), "--old is gone: leave it out");
  EXPECT_THAT(flags_.Help(), HasSubstr("--pad"));
  EXPECT_EQ(flags_.Help().find("--old"), std::string::npos);
}

TEST_F(FlagsTest, Refusals) {
  EXPECT_THAT(Error({"--imput", "x"}), HasSubstr("unknown flag --imput; did you mean '--input'?"));
  EXPECT_THAT(Error({"--imput", "x"}), testing::EndsWith("?"));
  EXPECT_EQ(Error({"--input"}), "--input needs a value");
  EXPECT_EQ(Error({"--append-eod=1"}), "--append-eod takes no value");
  EXPECT_THAT(Error({"--workers", "0"}), HasSubstr("--workers 0: expected a whole number"));
  EXPECT_THAT(Error({"--workers", "2x"}), HasSubstr("expected a whole number, at least 1"));
  EXPECT_EQ(Error({"--percent", "101"}),
            "--percent 101: expected a whole number, at least 0 and at most 100");
  EXPECT_EQ(Error({"--percent", "100"}), "(no UsageError)");
  EXPECT_THAT(Error({"stray"}), HasSubstr("'stray' is not a flag"));
  EXPECT_THAT(Error({"--append-eod", "stray"}), HasSubstr("'stray' is not a flag"));
}

}  // namespace
}  // namespace muster::tools
