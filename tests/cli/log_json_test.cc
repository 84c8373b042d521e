#include "controller/cli/log_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <vector>

namespace muster::cli {
namespace {

class LogJsonTest : public testing::Test {
 protected:
  void Write(const std::string& data, uint64_t offset) {
    v1::LogsResponse chunk;
    chunk.set_rank(3);
    chunk.set_host("node01");
    chunk.set_stream(v1::STREAM_STDOUT);
    chunk.set_offset(offset);
    chunk.set_data(data);
    chunk.set_realtime_ns(5);
    json_.Append(chunk);
  }
  std::vector<nlohmann::json> Lines() {
    std::vector<nlohmann::json> lines;
    std::istringstream in(out_);
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  std::string out_;
  LogJson json_{[this](std::string_view text) { out_ += text; }};
};

TEST_F(LogJsonTest, OneObjectALine) {
  Write("a\nb", 0);
  Write("c\n", 3);
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["text"], "a");
  EXPECT_EQ(lines[1]["text"], "bc");
  EXPECT_EQ(lines[1]["offset"], 2);
  EXPECT_EQ(lines[1]["rank"], 3);
  EXPECT_EQ(lines[1]["host"], "node01");
  EXPECT_EQ(lines[1]["stream"], "stdout");
  EXPECT_FALSE(lines[1].contains("partial"));
}

TEST_F(LogJsonTest, KeepsBytesThatAreNotUtf8) {
  Write("bad \xff\n", 0);
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["text"], "bad \xEF\xBF\xBD");
  EXPECT_EQ(lines[0]["hex"], "62616420ff");
}

TEST_F(LogJsonTest, MarksALineWithoutEnd) {
  Write("no newline", 0);
  json_.Finish();
  EXPECT_EQ(Lines().at(0)["partial"], true);
}

TEST_F(LogJsonTest, IsValidWhateverComesIn) {
  std::mt19937 random(11);
  uint64_t offset = 0;
  for (int i = 0; i < 500; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    Write(bytes, offset);
    offset += bytes.size();
  }
  json_.Finish();
  EXPECT_GT(Lines().size(), 10U);
}

}  // namespace
}  // namespace muster::cli
