#include "controller/api/server.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "common/unix_socket.h"
#include "tests/api/server_fixture.h"

namespace muster::api {
namespace {

TEST_F(ServerTest, AnswersEveryCall) {
  const auto stub = Connect();
  {
    grpc::ClientContext context;
    v1::SubmitRequest request;
    request.mutable_spec()->set_name("tiny");
    v1::SubmitResponse response;
    ASSERT_TRUE(stub->Submit(&context, request, &response).ok());
    EXPECT_EQ(response.output_dir(), "/out/tiny");
  }
  {
    grpc::ClientContext context;
    v1::ListJobsRequest request;
    request.set_all(true);
    v1::ListJobsResponse response;
    ASSERT_TRUE(stub->ListJobs(&context, request, &response).ok());
    EXPECT_EQ(response.jobs(0).id(), "all");
  }
  {
    v1::Job job;
    job.set_id("7");
    job.set_attempt(2);
    backend_.SetJob(job);
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_job("last");
    v1::GetJobResponse response;
    ASSERT_TRUE(stub->GetJob(&context, request, &response).ok());
    EXPECT_EQ(response.job().attempt(), 2u);
  }
  {
    grpc::ClientContext context;
    v1::StopRequest request;
    request.set_job("7");
    v1::StopResponse response;
    ASSERT_TRUE(stub->Stop(&context, request, &response).ok());
    EXPECT_EQ(response.job_ids(0), "7");
  }
  {
    grpc::ClientContext context;
    v1::ListNodesResponse response;
    ASSERT_TRUE(stub->ListNodes(&context, {}, &response).ok());
    EXPECT_EQ(response.nodes(0).host(), "127.0.0.2");
  }
  {
    grpc::ClientContext context;
    v1::InfoResponse response;
    ASSERT_TRUE(stub->Info(&context, {}, &response).ok());
    EXPECT_EQ(response.controller_id(), "c1");
  }
  {
    grpc::ClientContext context;
    v1::ShutdownRequest request;
    request.set_force(true);
    v1::ShutdownResponse response;
    EXPECT_TRUE(stub->Shutdown(&context, request, &response).ok());
  }
}

TEST_F(ServerTest, StatusesComeThroughUnchanged) {
  const auto stub = Connect();
  {
    grpc::ClientContext context;
    v1::SubmitResponse response;
    const grpc::Status status = stub->Submit(&context, {}, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(status.error_message(), "recipe.toml:3: no name");
  }
  {
    grpc::ClientContext context;
    v1::GetJobResponse response;
    const grpc::Status status = stub->GetJob(&context, {}, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(status.error_message(), "no job ''");
  }
  {
    grpc::ClientContext context;
    v1::ShutdownResponse response;
    const grpc::Status status = stub->Shutdown(&context, {}, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(status.error_message(), "1 job is active: 7 (tiny)");
  }
}

TEST_F(ServerTest, LargeJobsComeThrough) {
  v1::Job job;
  job.set_id("7");
  for (int i = 0; i < 2048; ++i) {
    job.add_ranks()->mutable_status()->mutable_exit()->set_error_record(std::string(8 << 10, 'x'));
  }
  backend_.SetJob(job);
  grpc::ClientContext context;
  v1::GetJobRequest request;
  request.set_job("7");
  v1::GetJobResponse response;
  ASSERT_TRUE(Connect()->GetJob(&context, request, &response).ok());
  EXPECT_EQ(response.job().ranks_size(), 2048);
}

TEST_F(ServerTest, TheSocketIsPrivateAndGoesWithTheServer) {
  const std::string path = SocketPath(dir_.path());
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_TRUE(S_ISSOCK(info.st_mode));
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_TRUE(absl::IsAlreadyExists(ListenUnix(path).status()));
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(absl::IsNotFound(api::Connect(dir_.path()).status()));
}

TEST_F(ServerTest, AStaleSocketIsReplaced) {
  server_.reset();
  const std::string path = SocketPath(dir_.path());
  { const auto dead = ListenUnix(path); }  // closed, but its file stays
  ASSERT_TRUE(std::filesystem::exists(path));
  EXPECT_TRUE(absl::IsUnavailable(api::Connect(dir_.path()).status()));
  Start({});
  grpc::ClientContext context;
  v1::InfoResponse response;
  EXPECT_TRUE(Connect()->Info(&context, {}, &response).ok());
}

TEST_F(ServerTest, LongFolderNamesWork) {
  const std::string deep = dir_.File(std::string(100, 'd').append("/").append(100, 'e'));
  const auto lock = StateLock::Acquire(deep);
  ASSERT_TRUE(lock.ok()) << lock.status();
  const auto server = Server::Start({}, *lock, backend_, *logs_);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto stub = api::Connect(deep);
  ASSERT_TRUE(stub.ok()) << stub.status();
  grpc::ClientContext context;
  v1::InfoResponse response;
  EXPECT_TRUE((*stub)->Info(&context, {}, &response).ok());
}

// A process of another user whom the file's mode would let in is turned away before gRPC sees a
// byte.
TEST_F(ServerTest, AnotherUserIsTurnedAway) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  const std::string path = SocketPath(dir_.path());
  std::filesystem::permissions(dir_.path(), std::filesystem::perms::all);
  std::filesystem::permissions(path, std::filesystem::perms::all);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (setgroups(0, nullptr) != 0 || setgid(12345) != 0 || setuid(12345) != 0) _exit(2);
    const auto fd = ConnectUnix(path);
    if (!fd.ok()) _exit(3);
    char byte = 0;
    for (int i = 0; i < 500; ++i) {  // gRPC would send its settings first
      const ssize_t n = recv(fd->get(), &byte, 1, 0);
      if (n >= 0) _exit(n == 0 ? 0 : 4);
      usleep(10'000);
    }
    _exit(5);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "exit code " << WEXITSTATUS(status);
  grpc::ClientContext context;
  v1::InfoResponse response;
  EXPECT_TRUE(Connect()->Info(&context, {}, &response).ok()) << "others are still served";
}

TEST_F(ServerTest, TwoThousandSilentConnectionsKeepNobodyOut) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < 4096) GTEST_SKIP() << "too few descriptors";
  limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, 4096);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<UniqueFd> silent;
  while (silent.size() < 2000) {
    auto fd = ConnectUnix(SocketPath(dir_.path()));
    if (absl::IsResourceExhausted(fd.status())) continue;  // its queue is full for the moment
    ASSERT_TRUE(fd.ok()) << fd.status();
    silent.push_back(*std::move(fd));
  }
  grpc::ClientContext context;
  v1::InfoResponse response;
  EXPECT_TRUE(Connect()->Info(&context, {}, &response).ok());
}

TEST_F(ServerTest, AnOversizedMessageIsAnErrorOfItsCallOnly) {
  const auto stub = Connect();
  v1::GetJobRequest request;
  request.set_job(std::string(65 << 20, 'x'));
  v1::GetJobResponse job;
  grpc::ClientContext context;
  EXPECT_EQ(stub->GetJob(&context, request, &job).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  grpc::ClientContext next;
  v1::InfoResponse response;
  EXPECT_TRUE(Connect()->Info(&next, {}, &response).ok());
}

}  // namespace
}  // namespace muster::api
