#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "controller/engine/reduce.h"

// Staging as the engine plays it: links, orders, sources and the end.

namespace muster::engine {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;

class StageFlow : public ::testing::Test {
 protected:
  template <typename What>
  void Tell(What what) {
    Step step = Reduce(std::move(state_), {now_ns_, std::move(what)});
    state_ = std::move(step.state);
    actions_ = std::move(step.actions);
    for (const auto& action : actions_) {
      if (const auto* send = std::get_if<Send>(&action); send && send->message.has_stage())
        orders_.emplace_back(send->host, send->message.stage());
      if (const auto* piece = std::get_if<SendPiece>(&action)) pieces_.push_back(piece->piece);
      if (const auto* news = std::get_if<StageNews>(&action)) news_.push_back(*news);
    }
  }

  void Request(const std::vector<std::string>& hosts) {
    StageRequested event;
    event.run.id = kId;
    event.run.transfer = 77;
    event.run.content_id = std::string(64, 'a');
    event.run.pieces = 100;
    event.run.bytes = 50;
    for (const auto& host : hosts) event.run.nodes.emplace_back().host.set_host(host);
    Tell(event);
  }
  void Up(const std::string& host) { Tell(LinkUp{host, {}}); }
  void Listening(const std::string& host, uint32_t port = 5) {
    StageReported event{host, {}};
    event.report.set_transfer(77);
    event.report.mutable_listening()->set_port(port);
    Tell(event);
  }
  void Status(const std::string& host, v1::StageState state, uint32_t pieces) {
    StageReported event{host, {}};
    event.report.set_transfer(77);
    event.report.mutable_status()->set_state(state);
    event.report.mutable_status()->set_pieces(pieces);
    Tell(event);
  }
  void Want(const std::string& host, uint32_t count) {
    StageReported event{host, {}};
    event.report.set_transfer(77);
    for (uint32_t i = 0; i < count; ++i) event.report.mutable_want()->add_pieces(i);
    Tell(event);
  }
  void Tick(int64_t after_ns) {
    now_ns_ += after_ns;
    Tell(TimerFired{{kId, TimerKind::kStage, ""}});
  }
  // The last source that the host was given: a port, or 0 for the controller; -1: none.
  int SourceOf(const std::string& host) const {
    int port = -1;
    for (const auto& [name, order] : orders_) {
      if (name == host && order.has_source()) port = static_cast<int>(order.source().port());
    }
    return port;
  }
  int Begins(const std::string& host) const {
    return static_cast<int>(std::count_if(orders_.begin(), orders_.end(), [&](const auto& order) {
      return order.first == host && order.second.has_begin();
    }));
  }

  static constexpr uint64_t kId = kFirstStaging + 1;
  State state_ = [] {
    State state;
    state.limits.connect = milliseconds(10'000);
    return state;
  }();
  Actions actions_;
  int64_t now_ns_ = 1'000 * kSecond;
  std::vector<std::pair<std::string, v1::StageOrder>> orders_;
  std::vector<uint32_t> pieces_;
  std::vector<StageNews> news_;
};

TEST_F(StageFlow, FromTheRequestToTheEnd) {
  Request({"n1", "n2", "n3"});
  EXPECT_EQ(state_.links.size(), 3u);
  EXPECT_EQ(Begins("n1"), 0);
  for (const char* host : {"n1", "n2", "n3"}) Up(host);
  EXPECT_EQ(Begins("n3"), 1);
  Listening("n1", 11);
  Listening("n2", 12);
  Listening("n3", 13);
  EXPECT_EQ(SourceOf("n1"), 0);
  EXPECT_EQ(SourceOf("n2"), 0);
  EXPECT_GT(SourceOf("n3"), 0);  // another host
  StageReported want{"n1", {}};
  want.report.set_transfer(77);
  want.report.mutable_want()->add_pieces(4);
  Tell(want);
  EXPECT_EQ(pieces_, std::vector<uint32_t>{4});
  Tell(PieceSent{kId, "n1", 1234});
  for (const char* host : {"n1", "n2", "n3"}) Status(host, v1::STAGE_STATE_DONE, 100);
  ASSERT_FALSE(news_.empty());
  EXPECT_TRUE(news_.back().response.last());
  EXPECT_TRUE(news_.back().why.ok());
  EXPECT_EQ(news_.back().response.bytes_sent(), 1234u);
  EXPECT_TRUE(orders_.back().second.has_end());
  EXPECT_TRUE(state_.stagings.empty());
}

TEST_F(StageFlow, AHostThatNeverAnswersFailsAloneAfterTheConnectTime) {
  Request({"n1", "n2"});
  Up("n1");
  Listening("n1");
  Status("n1", v1::STAGE_STATE_DONE, 100);
  Tell(LinkLost{"n2", absl::UnavailableError("connection refused")});
  Tick(5 * kSecond);
  EXPECT_FALSE(news_.back().response.last());
  Tick(6 * kSecond);
  ASSERT_TRUE(news_.back().response.last());
  const auto& failed = news_.back().response.hosts(1).status();
  EXPECT_EQ(failed.state(), v1::STAGE_STATE_FAILED);
  EXPECT_EQ(failed.error(), "did not say hello within 10 s (connection refused)");
}

TEST_F(StageFlow, AHopelessLinkFailsAtOnce) {
  Request({"n1"});
  Tell(LinkLost{"n1", absl::PermissionDeniedError("host key has changed")});
  ASSERT_FALSE(news_.empty());
  EXPECT_TRUE(news_.back().response.last());
  EXPECT_THAT(news_.back().response.hosts(0).status().error(), HasSubstr("host key"));
}

TEST_F(StageFlow, AHostThatComesBackBeginsAgainAndItsChildrenMoveOn) {
  Request({"n1", "n2", "n3", "n4"});
  for (const char* host : {"n1", "n2", "n3", "n4"}) Up(host);
  Listening("n1", 11);
  Listening("n2", 12);
  Listening("n3", 13);
  Listening("n4", 14);
  for (const char* host : {"n1", "n2", "n3", "n4"}) Status(host, v1::STAGE_STATE_FETCHING, 10);
  const int before = SourceOf("n3");
  const std::string parent = before == 11 ? "n1" : "n2";
  Tell(LinkLost{parent, absl::UnavailableError("gone")});
  // The child still has its connection; only when that breaks it is given another source.
  EXPECT_EQ(SourceOf("n3"), before);
  StageReported lost{"n3", {}};
  lost.report.set_transfer(77);
  lost.report.mutable_lost()->set_node(before == 11 ? 0 : 1);
  Tell(lost);
  EXPECT_NE(SourceOf("n3"), before);
  Tick(30 * kSecond);
  EXPECT_FALSE(news_.back().response.last());
  Up(parent);
  EXPECT_EQ(Begins(parent), 2);
  Listening(parent, 15);
  EXPECT_GE(SourceOf(parent), 0);
  Tell(LinkLost{parent, absl::UnavailableError("gone")});
  Tick(61 * kSecond);
  const int index = parent == "n1" ? 0 : 1;
  EXPECT_THAT(news_.back().response.hosts(index).status().error(),
              HasSubstr("its link was broken for 60 s"));
}

TEST_F(StageFlow, AHostThatRefusedAPieceOfTheControllersIsToldToAskAgain) {
  Request({"n1"});
  Up("n1");
  Listening("n1");
  ASSERT_EQ(SourceOf("n1"), 0);
  orders_.clear();
  StageReported lost{"n1", {}};
  lost.report.set_transfer(77);
  lost.report.mutable_lost()->set_error("it sent a piece that nobody asked for");
  Tell(lost);
  EXPECT_EQ(SourceOf("n1"), 0);
}

TEST_F(StageFlow, AHostThatFallsSilentIsGivenUpAndWhatItSaysLaterDoesNotCount) {
  Request({"n1", "n2"});
  for (const char* host : {"n1", "n2"}) Up(host);
  Listening("n1", 11);
  Listening("n2", 12);
  for (int i = 0; i < 5; ++i) {
    Tick(13 * kSecond);
    Status("n2", v1::STAGE_STATE_FETCHING, 1);  // no news, but it lives
  }
  EXPECT_FALSE(news_.back().response.last());
  const auto& silent = news_.back().response.hosts(0).status();
  EXPECT_EQ(silent.state(), v1::STAGE_STATE_FAILED);
  EXPECT_EQ(silent.error(), "its staging process has said nothing for 60 s: is it stopped?");
  EXPECT_EQ(news_.back().response.hosts(1).status().state(), v1::STAGE_STATE_FETCHING);
  EXPECT_TRUE(std::any_of(orders_.begin(), orders_.end(), [](const auto& order) {
    return order.first == "n1" && order.second.has_end();
  }));
  // It comes back after all: it stays failed, and nobody is sent to it.
  Status("n1", v1::STAGE_STATE_DONE, 100);
  Listening("n1", 11);
  Status("n2", v1::STAGE_STATE_DONE, 100);
  ASSERT_TRUE(news_.back().response.last());
  EXPECT_EQ(news_.back().response.hosts(0).status().state(), v1::STAGE_STATE_FAILED);
}

TEST_F(StageFlow, AHostIsSentEightPiecesAtATimeAndMoreWaitForTheirTurn) {
  Request({"n1", "n2"});
  for (const char* host : {"n1", "n2"}) Up(host);
  Listening("n1", 11);
  Listening("n2", 12);
  Want("n1", 20);
  EXPECT_EQ(pieces_.size(), 8u);
  Want("n2", 3);
  EXPECT_EQ(pieces_.size(), 11u);  // the other one is not behind them
  for (int sent = 1; sent <= 20; ++sent) {
    Tell(PieceSent{kId, "n1", 1});
    EXPECT_EQ(pieces_.size(), 3u + std::min(8 + sent, 20));
  }
  // After a new connection it asks again, and what waited is forgotten.
  Want("n1", 20);
  Tell(LinkLost{"n1", absl::UnavailableError("gone")});
  Up("n1");
  const size_t before = pieces_.size();
  for (int sent = 0; sent < 8; ++sent) Tell(PieceSent{kId, "n1", 1});
  EXPECT_EQ(pieces_.size(), before);
}

TEST_F(StageFlow, AHostThatAsksWithoutEndFailsAlone) {
  Request({"n1", "n2"});
  for (const char* host : {"n1", "n2"}) Up(host);
  Listening("n1", 11);
  Listening("n2", 12);
  for (int i = 0; i < 4; ++i) Want("n1", 100);
  EXPECT_EQ(pieces_.size(), 8u);
  Status("n2", v1::STAGE_STATE_DONE, 100);
  ASSERT_TRUE(news_.back().response.last());
  EXPECT_THAT(news_.back().response.hosts(0).status().error(),
              HasSubstr("asked for more than 256 pieces at a time"));
  EXPECT_EQ(news_.back().response.hosts(1).status().state(), v1::STAGE_STATE_DONE);
}

TEST_F(StageFlow, AClientThatLeavesEndsItEverywhere) {
  Request({"n1"});
  Up("n1");
  Listening("n1");
  Tell(StageBroken{kId, absl::CancelledError("the client has left")});
  EXPECT_TRUE(orders_.back().second.has_end());
  EXPECT_TRUE(state_.stagings.empty());
  EXPECT_TRUE(absl::IsCancelled(news_.back().why));
  // What comes late changes nothing.
  Status("n1", v1::STAGE_STATE_DONE, 100);
  Tick(kSecond);
  EXPECT_TRUE(state_.stagings.empty());
}

}  // namespace
}  // namespace muster::engine
