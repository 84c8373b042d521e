#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "controller/logs/layout.h"
#include "tests/api/server_fixture.h"

namespace muster::api {
namespace {

class LogsTest : public ServerTest {
 protected:
  LogsTest() {
    files_.id.set_controller_id("c1");
    SetState(v1::JOB_STATE_RUNNING);
  }

  // The log organ calls back into acks_.
  ~LogsTest() override {
    server_.reset();
    logs_.reset();
  }

  void SetState(v1::JobState state, bool with_plan = true) {
    v1::Job job;
    job.set_id("7");
    job.set_state(state);
    job.set_output_dir(dir_.path());
    if (with_plan) *job.mutable_plan() = files_.plan;
    backend_.SetJob(job);
  }
  void Write(uint32_t rank, const std::string& text, bool end = false) {
    uint64_t& offset = offsets_[rank];
    v1::LogChunk chunk = logs::MakeChunk(files_, rank, v1::STREAM_STDOUT, offset, text, end);
    v1::WriteTime& time = *chunk.add_times();
    time.set_offset(offset);
    time.set_realtime_ns(++clock_);
    offset += text.size();
    logs_->OnLog(logs::HostOf(files_, rank), chunk, acks_.Callback());
  }
  void EndAll() {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      for (const v1::Stream stream : logs::kStreams) {
        const uint64_t offset = stream == v1::STREAM_STDOUT ? offsets_[rank] : 0;
        logs_->OnLog(logs::HostOf(files_, rank),
                     logs::MakeChunk(files_, rank, stream, offset, "", true), acks_.Callback());
      }
    }
  }
  static v1::LogsRequest Request(bool follow) {
    v1::LogsRequest request;
    request.set_job("last");
    request.set_follow(follow);
    return request;
  }
  struct Viewer {
    std::unique_ptr<v1::Control::Stub> stub;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::LogsResponse>> stream;

    // Reads until so many bytes have come, or to the end.
    std::string Read(size_t bytes = SIZE_MAX) {
      std::string out;
      v1::LogsResponse response;
      while (out.size() < bytes && stream->Read(&response)) out += response.data();
      return out;
    }
  };
  std::unique_ptr<Viewer> View(const v1::LogsRequest& request) {
    auto viewer = std::make_unique<Viewer>();
    viewer->stub = Connect();
    viewer->stream = viewer->stub->Logs(&viewer->context, request);
    return viewer;
  }

  logs::AttemptFiles files_ = logs::MakeAttempt(dir_.path(), 1, 2);
  logs::Acks acks_;
  uint64_t offsets_[2] = {};
  int64_t clock_ = 0;
};

TEST_F(LogsTest, WithoutFollowWhatIsThere) {
  ASSERT_TRUE(logs_->Open(files_).ok());
  Write(0, "a\n");
  Write(1, "b\nunfinished");
  const auto viewer = View(Request(false));
  EXPECT_EQ(viewer->Read(), "a\nb\nunfinished");
  EXPECT_TRUE(viewer->stream->Finish().ok());
}

TEST_F(LogsTest, FollowsToTheEndOfTheAttempt) {
  ASSERT_TRUE(logs_->Open(files_).ok());
  Write(0, "old\n");
  const auto viewer = View(Request(true));
  EXPECT_EQ(viewer->Read(4), "old\n");
  Write(1, "new\n");
  EXPECT_EQ(viewer->Read(4), "new\n");
  Write(0, "prompt");
  EXPECT_EQ(viewer->Read(6), "prompt");
  SetState(v1::JOB_STATE_SUCCEEDED);
  Write(0, "!");
  EndAll();
  EXPECT_EQ(viewer->Read(), "!");
  EXPECT_TRUE(viewer->stream->Finish().ok());
}

TEST_F(LogsTest, FollowBeginsBeforeThereIsAPlan) {
  SetState(v1::JOB_STATE_QUEUED, false);
  const auto viewer = View(Request(true));
  SetState(v1::JOB_STATE_PREPARING);
  ASSERT_TRUE(logs_->Open(files_).ok());
  Write(0, "first\n");
  EXPECT_EQ(viewer->Read(6), "first\n");
  EndAll();
  EXPECT_EQ(viewer->Read(), "");
}

TEST_F(LogsTest, AJobThatNeverHadLogsEndsTheFollower) {
  SetState(v1::JOB_STATE_QUEUED, false);
  const auto viewer = View(Request(true));
  SetState(v1::JOB_STATE_FAILED, false);
  EXPECT_EQ(viewer->Read(), "");
  EXPECT_TRUE(viewer->stream->Finish().ok());
}

TEST_F(LogsTest, AnEndedJobOfAFormerControllerIsReadFromItsFiles) {
  ASSERT_TRUE(logs_->Open(files_).ok());
  Write(0, "x\n");
  EndAll();
  ASSERT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, 2, true));
  server_.reset();
  logs_ = logs::FileRegistry::Make(logs::QuickOptions());
  Start({});
  SetState(v1::JOB_STATE_SUCCEEDED);
  const auto viewer = View(Request(true));
  EXPECT_EQ(viewer->Read(), "x\n");
  EXPECT_TRUE(viewer->stream->Finish().ok());
}

TEST_F(LogsTest, WrongRequestsAreNamed) {
  v1::LogsRequest request = Request(false);
  request.add_ranks(5);
  auto viewer = View(request);
  viewer->Read();
  EXPECT_EQ(viewer->stream->Finish().error_message(), "rank 5: the job has ranks 0 to 1");
  request = Request(false);
  request.set_attempt(3);
  viewer = View(request);
  viewer->Read();
  EXPECT_EQ(viewer->stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_job("nobody");
  viewer = View(request);
  viewer->Read();
  EXPECT_EQ(viewer->stream->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

// A viewer that reads nothing neither stops the writer nor the others.
TEST_F(LogsTest, AStalledViewerHoldsUpNobody) {
  ASSERT_TRUE(logs_->Open(files_).ok());
  const auto stalled = View(Request(true));
  const auto other = View(Request(true));
  const std::string line = logs::LongLine(999);
  std::string expected;
  for (int i = 0; i < 20; ++i) {
    std::string chunk;
    for (int k = 0; k < 200; ++k) chunk += line;
    Write(0, chunk);
    expected += chunk;
  }
  ASSERT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, expected.size()));
  EXPECT_TRUE(other->Read(expected.size()) == expected);
  EndAll();
  EXPECT_EQ(other->Read(), "");
  EXPECT_TRUE(stalled->Read() == expected) << "late, but whole";
}

TEST_F(LogsTest, TwentyViewersSeeTheSame) {
  ASSERT_TRUE(logs_->Open(files_).ok());
  std::atomic<int> right{0};
  std::vector<std::thread> viewers;
  for (int i = 0; i < 20; ++i) {
    viewers.emplace_back([&] {
      const auto viewer = View(Request(true));
      if (viewer->Read().size() == 200 * 8) ++right;
    });
  }
  for (int i = 0; i < 100; ++i) {
    Write(0, "line of\n");
    Write(1, "line to\n");
  }
  EndAll();
  for (std::thread& viewer : viewers) viewer.join();
  EXPECT_EQ(right, 20);
}

TEST_F(LogsTest, ViewersBeyondTheLimitAreRefusedUntilOneGoes) {
  Server::Options options;
  options.max_log_viewers = 1;
  Start(options);
  ASSERT_TRUE(logs_->Open(files_).ok());
  Write(0, "x\n");
  auto first = View(Request(true));
  EXPECT_EQ(first->Read(2), "x\n");
  auto second = View(Request(true));
  EXPECT_EQ(second->Read(), "");
  const grpc::Status status = second->stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("1 viewers read logs already"), std::string::npos);
  first->context.TryCancel();
  first->Read();
  std::string got;
  while (got.empty()) got = View(Request(false))->Read();
  EXPECT_EQ(got, "x\n");
}

TEST_F(LogsTest, TheEndOfTheServerEndsViewers) {
  ASSERT_TRUE(logs_->Open(files_).ok());
  Write(0, "x\n");
  const auto viewer = View(Request(true));
  EXPECT_EQ(viewer->Read(2), "x\n");
  std::thread closer([this] { server_.reset(); });
  EXPECT_EQ(viewer->Read(), "");
  EXPECT_FALSE(viewer->stream->Finish().ok());
  closer.join();
}

TEST_F(LogsTest, GrepGivesTheLinesThatMatch) {
  ASSERT_TRUE(logs_->Open(files_).ok());
  Write(0, "loss 1\nnoise\nloss 2\nlo");
  v1::LogsRequest request = Request(true);
  request.set_grep("^loss [0-9]$");
  request.set_times(true);
  const auto viewer = View(request);
  v1::LogsResponse run;
  ASSERT_TRUE(viewer->stream->Read(&run));
  EXPECT_EQ(run.data(), "loss 1\n");
  EXPECT_EQ(run.offset(), 0U);
  ASSERT_TRUE(viewer->stream->Read(&run));
  EXPECT_EQ(run.data(), "loss 2\n");
  EXPECT_EQ(run.offset(), 13U);
  Write(0, "ss 3\n");  // a line that comes in two writes is looked at whole
  ASSERT_TRUE(viewer->stream->Read(&run));
  EXPECT_EQ(run.data(), "loss 3\n");
  EXPECT_EQ(run.realtime_ns(), 1);
  EndAll();
  SetState(v1::JOB_STATE_SUCCEEDED);
  EXPECT_FALSE(viewer->stream->Read(&run));
  EXPECT_TRUE(viewer->stream->Finish().ok());
}

TEST_F(LogsTest, ABadPatternIsRefusedWithItsPlace) {
  v1::LogsRequest request = Request(false);
  request.set_grep("a(b");
  const auto viewer = View(request);
  EXPECT_EQ(viewer->Read(), "");
  const grpc::Status status = viewer->stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("at character 4"), std::string::npos)
      << status.error_message();
}

TEST_F(LogsTest, APatternThatNeverEndsIsGivenUp) {
  ASSERT_TRUE(logs_->Open(files_).ok());
  std::string line(5000, 'a');
  line.push_back('\n');
  Write(0, line);
  v1::LogsRequest request = Request(false);
  request.set_grep("(a+)+b(?<=x)|(a|aa)+$c");
  const auto viewer = View(request);
  EXPECT_EQ(viewer->Read(), "");
  const grpc::Status status = viewer->stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_NE(status.error_message().find("line of rank 0"), std::string::npos)
      << status.error_message();
}

TEST_F(LogsTest, FollowGoesOnWithTheNextAttempt) {
  ASSERT_TRUE(logs_->Open(files_).ok());
  SetState(v1::JOB_STATE_RESTARTING);
  Write(0, "first\n");
  EndAll();
  v1::LogsRequest request = Request(true);
  request.set_tail_lines(5);
  const auto viewer = View(request);
  EXPECT_EQ(viewer->Read(6), "first\n");
  logs::AttemptFiles next = files_;
  next.id.set_attempt(1);
  ASSERT_TRUE(logs_->Open(next).ok());
  logs_->OnLog(logs::HostOf(next, 0), logs::MakeChunk(next, 0, v1::STREAM_STDOUT, 0, "second\n"),
               acks_.Callback());
  v1::Job job;
  job.set_id("7");
  job.set_state(v1::JOB_STATE_RUNNING);
  job.set_attempt(1);
  job.set_output_dir(dir_.path());
  *job.mutable_plan() = files_.plan;
  backend_.SetJob(job);
  v1::LogsResponse run;
  ASSERT_TRUE(viewer->stream->Read(&run));
  EXPECT_EQ(run.data(), "second\n");
  EXPECT_EQ(run.attempt(), 1U);
  viewer->context.TryCancel();
  v1::LogsRequest all = Request(false);
  all.set_all_attempts(true);
  EXPECT_EQ(View(all)->Read(), "first\nsecond\n");
}

}  // namespace
}  // namespace muster::api
