// The six ways to name data, and the orders and boundaries they are read in.
#include "trainer/data/data_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/data/golden.h"
#include "trainer/data/data_error.h"

namespace muster::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PathsTest : public ::testing::Test {
 protected:
  std::string File(const std::string& text) {
    const std::string path = (folder_.path() / "list").string();
    testing::WriteFile(path, text);
    return path;
  }
  std::string Error() const {
    try {
      ReadDataPaths(flags_);
    } catch (const DataError& error) {
      return error.what();
    }
    return "(no DataError)";
  }

  testing::TempFolder folder_;
  DataPathFlags flags_;
};

TEST_F(PathsTest, WeightsAreWhatPythonCallsFloats) {
  const auto weights = [](const std::string& word) { return ParseBlend({word, "a"}).weights; };
  EXPECT_THAT(*weights("30"), ElementsAre(30));
  EXPECT_THAT(*weights(" 1_000.5 "), ElementsAre(1000.5));
  EXPECT_THAT(*weights("1e-3"), ElementsAre(1e-3));
  EXPECT_THAT(*weights("+.5"), ElementsAre(0.5));
  EXPECT_FALSE(weights("0x10"));
  EXPECT_FALSE(weights("_1"));
  EXPECT_FALSE(weights("1__0"));
  EXPECT_FALSE(weights("a"));
  EXPECT_THAT(ParseBlend({"1", " a "}).prefixes, ElementsAre("a"));
  EXPECT_THAT(ParseBlend({"1", "a", "2"}).prefixes, ElementsAre("1", "a", "2"))
      << "an odd number of words: prefixes only";
}

TEST_F(PathsTest, AFileHoldsTheWordsOfDataPath) {
  flags_.data_args_path = File("30 a\n70\tb\r\n");
  const DataPaths paths = ReadDataPaths(flags_);
  EXPECT_THAT(paths.shared->prefixes, ElementsAre("a", "b"));
  EXPECT_THAT(*paths.shared->weights, ElementsAre(30, 70));

  flags_.data_args_path = File(" \n");
  EXPECT_THAT(Error(), HasSubstr("list: names no data set"));
  flags_.data_args_path = File("30 a many b");
  EXPECT_THAT(Error(), HasSubstr("list: 'many' stands where a weight is expected"));
  flags_.data_args_path = (folder_.path() / "none").string();
  EXPECT_THAT(Error(), HasSubstr("none: No such file"));
  flags_.data_args_path = folder_.path().string();
  EXPECT_THAT(Error(), HasSubstr("Is a directory"));
}

TEST_F(PathsTest, AJsonFileHoldsListsForEachSplit) {
  flags_.per_split_data_args_path =
      File(R"({"train": [3, "a", "1.5", "b"], "valid": "c d e", "test": null, "other": 1})");
  const DataPaths paths = ReadDataPaths(flags_);
  EXPECT_FALSE(paths.shared);
  EXPECT_THAT(paths.per_split[0]->prefixes, ElementsAre("a", "b"));
  EXPECT_THAT(*paths.per_split[0]->weights, ElementsAre(3, 1.5));
  EXPECT_THAT(paths.per_split[1]->prefixes, ElementsAre("c", "d", "e"));
  EXPECT_FALSE(paths.per_split[1]->weights);
  EXPECT_FALSE(paths.per_split[2]);

  const std::pair<const char*, const char*> wrong[] = {
      {R"({"train": "a", "valid": "b"})", "list: no key \"test\""},
      {R"({"train": 1, "valid": "b", "test": null})", "list, \"train\": expected a list of words"},
      {R"({"train": [[]], "valid": "b", "test": null})", "[] is neither a text nor a number"},
      {R"({"train": "a", "valid": [], "test": null})", "\"valid\": names no data set"},
      {R"([1])", "no key \"train\""},
      {"{\n  \"train\": \"a\",\n}", "line 3, column 1"}};
  for (const auto& [text, message] : wrong) {
    flags_.per_split_data_args_path = File(text);
    EXPECT_THAT(Error(), HasSubstr(message)) << text;
  }
}

TEST_F(PathsTest, ListsForEachSplit) {
  flags_.valid_data_path = {"1", "a", "2", "b"};
  const DataPaths paths = ReadDataPaths(flags_);
  EXPECT_FALSE(paths.shared || paths.per_split[0] || paths.per_split[2]);
  EXPECT_THAT(*paths.per_split[1]->weights, ElementsAre(1, 2));
  flags_.test_data_path = {"1", "a", "x", "b"};
  EXPECT_THAT(Error(), HasSubstr("--test-data-path: 'x' stands where a weight"));
}

}  // namespace
}  // namespace muster::data
