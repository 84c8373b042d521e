#include "trainer/loop/events.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/unique_fd.h"

namespace muster::loop {
namespace {

struct Pipe {
  Pipe() {
    int fds[2];
    EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
    reader.reset(fds[0]);
    writer.reset(fds[1]);
  }
  std::string Read() const {
    std::string text(1 << 16, '\0');
    text.resize(
        static_cast<size_t>(std::max<ssize_t>(0, read(reader.get(), text.data(), text.size()))));
    return text;
  }
  UniqueFd reader;
  UniqueFd writer;
};

TEST(Events, AreOneJsonObjectALine) {
  const Pipe pipe;
  EventWriter events(pipe.writer.get(), 3);
  events.Write(
      "iteration",
      {{"iteration", int64_t{7}}, {"lm_loss", 0.1 + 0.2}, {"note", std::string("a\n\"b\"")}});
  events.Write("nan", {{"lm_loss", std::nan("")}});
  const std::string text = pipe.Read();
  const size_t newline = text.find('\n');
  const auto first = nlohmann::json::parse(text.substr(0, newline));
  EXPECT_EQ(first.at("event"), "iteration");
  EXPECT_EQ(first.at("rank"), 3);
  EXPECT_EQ(first.at("iteration"), 7);
  EXPECT_EQ(first.at("lm_loss").get<double>(), 0.1 + 0.2);  // all digits
  EXPECT_EQ(first.at("note"), "a\n\"b\"");
  EXPECT_GT(first.at("time").get<double>(), 1.6e9);
  EXPECT_TRUE(nlohmann::json::parse(text.substr(newline + 1)).at("lm_loss").is_null());
}

TEST(Events, AFullPipeDropsLinesAndNeverBlocks) {
  const Pipe pipe;
  EventWriter events(pipe.writer.get(), 0);
  for (int i = 0; i < 3000; ++i) events.Write("x", {{"text", std::string(200, 'x')}});
  EXPECT_GT(events.dropped(), 0);
  const std::string text = pipe.Read();
  EXPECT_EQ(text.back(), '\n');  // no torn line
}

TEST(Events, AClosedReaderIsNoError) {
  signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  EventWriter events(pipe.writer.get(), 0);
  pipe.reader.reset();
  events.Write("x", {});
  events.Write("x", {});
  EventWriter(-1, 0).Write("x", {});
}

}  // namespace
}  // namespace muster::loop
