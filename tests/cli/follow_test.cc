#include "controller/cli/follow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "tests/cli/fake_control.h"

namespace muster::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

v1::WatchResponse Event(uint64_t sequence, const std::string& text) {
  v1::WatchResponse response;
  response.mutable_event()->set_sequence(sequence);
  response.mutable_event()->set_kind("state");
  response.mutable_event()->set_text(text);
  return response;
}

v1::WatchResponse Last(uint64_t sequence) {
  v1::WatchResponse response = Event(sequence, "the end");
  response.mutable_event()->set_state(v1::JOB_STATE_SUCCEEDED);
  response.mutable_job()->set_state(v1::JOB_STATE_SUCCEEDED);
  return response;
}

v1::LogsResponse Chunk(uint32_t rank, uint64_t offset, const std::string& data) {
  v1::LogsResponse chunk;
  chunk.set_rank(rank);
  chunk.set_stream(v1::STREAM_STDOUT);
  chunk.set_offset(offset);
  chunk.set_data(data);
  return chunk;
}

class FollowTest : public testing::Test {
 protected:
  FollowTest() : signals_({SIGINT, SIGTERM, SIGHUP}), fd_(memfd_create("out", MFD_CLOEXEC)) {}
  ~FollowTest() override { close(fd_); }

  absl::StatusOr<Followed> Run() {
    Client client(control_.connector());
    FollowOptions options;
    options.fd = fd_;
    return Follow(client, signals_, "3", 2, options);
  }
  std::string Output() const {
    std::string out(static_cast<size_t>(lseek(fd_, 0, SEEK_END)), '\0');
    EXPECT_EQ(pread(fd_, out.data(), out.size(), 0), static_cast<ssize_t>(out.size()));
    return out;
  }
  // Sends signals to the following thread, one after each stop that the controller has seen.
  std::thread Send(std::vector<int> signals) {
    return std::thread([this, signals, target = pthread_self()] {
      size_t stops = 0;
      for (const int signal : signals) {
        pthread_kill(target, signal);
        ++stops;
        while (signal != SIGHUP && control_.StopCount() < stops) usleep(1000);
      }
    });
  }

  FakeControl control_;
  SignalWait signals_;
  int fd_;
};

TEST_F(FollowTest, ShowsPhasesAndLinesAndGivesTheEndedJob) {
  control_.on_watch = [](const auto&, auto* writer) {
    writer->Write(Event(1, "preflight"));
    writer->Write(Last(2));
    return grpc::Status::OK;
  };
  control_.on_logs = [](const v1::LogsRequest& request, auto* writer) {
    EXPECT_TRUE(request.follow());
    writer->Write(Chunk(1, 0, "hello\nworld"));
    return grpc::Status::OK;
  };
  const auto followed = Run();
  ASSERT_TRUE(followed.ok()) << followed.status();
  EXPECT_EQ(followed->end, Followed::End::kJobEnded);
  EXPECT_EQ(followed->job.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(Output(), HasSubstr("muster: preflight\n"));
  EXPECT_THAT(Output(), HasSubstr("[1] hello\n"));  // a phase may come between
  EXPECT_THAT(Output(), HasSubstr("[1] world\n"));
  EXPECT_THAT(Output(), Not(HasSubstr("the end")));  // the summary says it
}

TEST_F(FollowTest, GoesOnWhereItWasWhenTheControllerComesBack) {
  std::atomic<int> watches{0};
  std::atomic<int> logs{0};
  control_.on_watch = [&](const v1::WatchRequest& request, auto* writer) -> grpc::Status {
    if (watches++ == 0) {
      writer->Write(Event(1, "preflight"));
      return {grpc::StatusCode::UNAVAILABLE, "killed"};
    }
    EXPECT_EQ(request.after(), 1U);
    writer->Write(Last(2));
    return grpc::Status::OK;
  };
  control_.on_logs = [&](const auto&, auto* writer) -> grpc::Status {
    writer->Write(Chunk(0, 0, "one\nt"));
    if (logs++ == 0) return {grpc::StatusCode::UNAVAILABLE, "killed"};
    writer->Write(Chunk(0, 5, "wo\n"));
    return grpc::Status::OK;
  };
  const auto followed = Run();
  ASSERT_TRUE(followed.ok()) << followed.status();
  EXPECT_GE(control_.connections, 2);
  EXPECT_THAT(Output(), HasSubstr("the controller went away"));
  const std::string out = Output();
  EXPECT_EQ(out.find("[0] one\n"), out.rfind("[0] one\n"));
  EXPECT_THAT(out, HasSubstr("[0] two\n"));
}

TEST_F(FollowTest, SigtermStopsAndASecondOneTakesTheGraceAway) {
  control_.on_watch = [&](const auto&, auto* writer) {
    while (control_.StopCount() < 2) usleep(1000);
    writer->Write(Last(1));
    return grpc::Status::OK;
  };
  std::thread sender = Send({SIGTERM, SIGINT});
  const auto followed = Run();
  sender.join();
  ASSERT_TRUE(followed.ok()) << followed.status();
  ASSERT_EQ(control_.stops.size(), 2U);
  EXPECT_EQ(control_.stops[0].job(), "3");
  EXPECT_FALSE(control_.stops[0].has_grace());
  ASSERT_TRUE(control_.stops[1].has_grace());
  EXPECT_EQ(control_.stops[1].grace().seconds(), 0);
}

TEST_F(FollowTest, HangingUpDetaches) {
  std::atomic<bool> done{false};
  control_.on_watch = [&](const auto&, auto* writer) {
    while (!done && writer->Write(Event(1, "running"))) usleep(10'000);
    return grpc::Status::OK;
  };
  std::thread sender = Send({SIGHUP});
  const auto followed = Run();
  done = true;
  sender.join();
  ASSERT_TRUE(followed.ok()) << followed.status();
  EXPECT_EQ(followed->end, Followed::End::kDetached);
  EXPECT_EQ(control_.StopCount(), 0U);
}

TEST_F(FollowTest, AnErrorOfTheControllerIsAnError) {
  control_.on_watch = [](const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "no job '3'");
  };
  EXPECT_EQ(Run().status().message(), "no job '3'");
}

}  // namespace
}  // namespace muster::cli
