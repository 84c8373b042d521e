#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/api/server_fixture.h"

namespace muster::api {
namespace {

class WatchTest : public ServerTest {
 protected:
  WatchTest() {
    v1::Job job;
    job.set_id("7");
    backend_.SetJob(job);
  }
  static v1::WatchRequest Request(uint64_t after = 0) {
    v1::WatchRequest request;
    request.set_job("7");
    request.set_after(after);
    return request;
  }
  // Reads to the end; the numbers of the events and, as the last one, 0 if the final job came.
  static std::vector<uint64_t> ReadAll(v1::Control::Stub& stub, uint64_t after,
                                       grpc::Status& status) {
    grpc::ClientContext context;
    const auto stream = stub.Watch(&context, Request(after));
    std::vector<uint64_t> out;
    v1::WatchResponse response;
    while (stream->Read(&response)) {
      if (response.has_event()) out.push_back(response.event().sequence());
      if (response.has_job()) out.push_back(0);
    }
    status = stream->Finish();
    return out;
  }
  void WaitForWatchers(size_t count) {
    while (backend_.watching() != count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

TEST_F(WatchTest, OldAndNewEventsAndTheEnd) {
  backend_.EmitUpTo(3);
  const auto stub = Connect();
  std::thread engine([this] {
    WaitForWatchers(1);
    backend_.EmitUpTo(5);
    backend_.EmitUpTo(6, true);
  });
  grpc::Status status;
  EXPECT_EQ(ReadAll(*stub, 1, status), (std::vector<uint64_t>{2, 3, 4, 5, 6, 0}));
  EXPECT_TRUE(status.ok());
  engine.join();
  WaitForWatchers(0);
}

TEST_F(WatchTest, AJobThatHasEndedIsToldAtOnce) {
  backend_.EmitUpTo(2, true);
  grpc::Status status;
  EXPECT_EQ(ReadAll(*Connect(), 0, status), (std::vector<uint64_t>{1, 2, 0}));
  EXPECT_EQ(ReadAll(*Connect(), 2, status), (std::vector<uint64_t>{0}))
      << "nothing new but the job";
  EXPECT_TRUE(status.ok());
}

TEST_F(WatchTest, AnUnknownJobIsNotFound) {
  grpc::ClientContext context;
  v1::WatchRequest request;
  request.set_job("8");
  const auto stream = Connect()->Watch(&context, request);
  v1::WatchResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

// One who does not read is cut off from the live events, costs bounded memory, and misses nothing
// in the end.
TEST_F(WatchTest, ASlowWatcherMissesNothing) {
  Server::Options options;
  options.watch_queue = 16;
  Start(options);
  backend_.set_event_bytes(20'000);  // far beyond what sockets and flow control hold
  const auto stub = Connect();
  grpc::ClientContext context;
  const auto stream = stub->Watch(&context, Request());
  WaitForWatchers(1);
  for (uint64_t i = 1; i <= 1000; ++i) backend_.EmitUpTo(i);
  backend_.EmitUpTo(1001, true);
  v1::WatchResponse response;
  uint64_t expected = 0;
  while (stream->Read(&response)) {
    ++expected;
    ASSERT_EQ(response.event().sequence(), expected);
  }
  EXPECT_EQ(expected, 1001u);
  EXPECT_TRUE(response.has_job());
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_GT(backend_.subscribed(), 1) << "it fell behind and was subscribed again";
}

TEST_F(WatchTest, SixtyFourWatchers) {
  std::atomic<int> right{0};
  std::vector<std::thread> watchers;
  for (int i = 0; i < 64; ++i) {
    watchers.emplace_back([&] {
      const auto stub = Connect();
      grpc::Status status;
      const auto events = ReadAll(*stub, 0, status);
      if (status.ok() && events.size() == 501 && events.back() == 0) ++right;
    });
  }
  WaitForWatchers(64);
  for (uint64_t i = 1; i <= 500; ++i) backend_.EmitUpTo(i, i == 500);
  for (std::thread& watcher : watchers) watcher.join();
  EXPECT_EQ(right, 64);
  WaitForWatchers(0);
}

TEST_F(WatchTest, AWatcherThatGoesAwayIsForgotten) {
  const auto stub = Connect();
  grpc::ClientContext context;
  const auto stream = stub->Watch(&context, Request());
  WaitForWatchers(1);
  context.TryCancel();
  v1::WatchResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  WaitForWatchers(0);
}

TEST_F(WatchTest, TheEndOfTheServerEndsWatchers) {
  const auto stub = Connect();
  grpc::ClientContext context;
  const auto stream = stub->Watch(&context, Request());
  WaitForWatchers(1);
  std::thread closer([this] { server_.reset(); });
  v1::WatchResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_FALSE(stream->Finish().ok());
  closer.join();
  EXPECT_EQ(backend_.watching(), 0u);
}

}  // namespace
}  // namespace muster::api
