// A hostile client of a real daemon: what it sends is refused, and the daemon serves others on.
#include <gmock/gmock.h>
#include <grp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "common/unix_socket.h"
#include "tests/worker/e2e_fixture.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

class Security : public WorkerE2e {
 protected:
  // A controller that knows nothing of the other: hello, and a job from its start to its end.
  void ExpectServed() {
    Connect();
    const v1::AttemptId id = Job("good" + std::to_string(++jobs_));
    Launch(id, {"/bin/true"});
    WaitEnd(id);
  }
  // What the daemon says to a wish for an attempt of this name.
  std::string RefusalOf(const v1::AttemptId& id) {
    client_->Send(Prepare(id, {"/bin/true"}));
    const auto observed = client_->WaitFor(
        id, [](const v1::Observed& o) { return !o.refused().empty(); }, 10s);
    return observed ? observed->refused() : "";
  }
  std::string socket_path() const { return state_dir() + "/musterd.sock"; }

  int jobs_ = 0;
};

TEST_F(Security, NamesThatWouldLeaveTheStateFolderAreRefused) {
  for (const std::string& job :
       {std::string("../../../escape"), std::string(".."), std::string("a/b"), std::string("/abs"),
        std::string(""), std::string("a\0b", 3), std::string(65, 'x'), std::string(1 << 20, 'y'),
        std::string(".hidden"), std::string("a b"), std::string("\xc3\xa9")}) {
    v1::AttemptId id = Job("x");
    id.set_job_id(job);
    EXPECT_FALSE(RefusalOf(id).empty()) << job.substr(0, 80);
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(temp_.path())) {
    EXPECT_EQ(entry.path().string().find("escape"), std::string::npos) << entry.path();
  }
  EXPECT_FALSE(std::filesystem::exists("/escape"));
  ExpectServed();
}

TEST_F(Security, AnotherControllersNameOpensNothing) {
  v1::AttemptId id = Job("1");
  id.set_controller_id("../other");
  EXPECT_FALSE(RefusalOf(id).empty());
  ExpectServed();
}

TEST_F(Security, AControllersOwnNameIsCheckedToo) {
  for (const std::string& name :
       {std::string("../x"), std::string("a\nb"), std::string(1000, 'c')}) {
    Client hostile("unix:" + socket_path(), name);
    EXPECT_FALSE(hostile.WaitHello(2s).has_value()) << name.substr(0, 20);
    EXPECT_FALSE(hostile.Finish().ok());
  }
  ExpectServed();
}

TEST_F(Security, AnOversizedMessageEndsItsStreamOnly) {
  const v1::AttemptId id = Job("big");
  v1::Desired wish = Prepare(id, {"/bin/true"});
  wish.mutable_ranks(0)->add_argv(std::string(65 << 20, 'x'));
  client_->Send(wish);
  EXPECT_EQ(client_->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectServed();
}

TEST_F(Security, FoldersForCertificatesAreChecked) {
  const auto channel =
      grpc::CreateChannel("unix:" + socket_path(), grpc::InsecureChannelCredentials());
  const auto stub = v1::Worker::NewStub(channel);
  const auto ask = [&](const std::string& ca, const std::string& host, const std::string& folder) {
    grpc::ClientContext context;
    v1::RequestCertificateRequest request;
    request.set_ca(ca);
    request.set_host(host);
    request.set_folder(folder);
    v1::RequestCertificateResponse response;
    return stub->RequestCertificate(&context, request, &response);
  };
  const std::string inside = temp_.path() + "/tls";
  EXPECT_TRUE(ask("lab", "n1", inside).ok());
  EXPECT_FALSE(ask("lab", "../n1", inside).ok());
  EXPECT_FALSE(ask("a/b", "n1", inside).ok());
  EXPECT_FALSE(ask("lab", "n1", "relative").ok());
  EXPECT_FALSE(ask("lab", "n1", temp_.path() + "/x/../../etc").ok());
  EXPECT_FALSE(ask("lab", "n1", "/" + std::string(5000, 'x')).ok());
  // Somebody else's folder for everybody, or a link.
  ASSERT_EQ(mkdir((temp_.path() + "/open").c_str(), 0777), 0);
  ASSERT_EQ(chmod((temp_.path() + "/open").c_str(), 0777), 0);
  EXPECT_THAT(ask("lab", "n1", temp_.path() + "/open").error_message(), HasSubstr("chmod 700"));
  std::filesystem::create_symlink(inside, temp_.path() + "/link");
  EXPECT_THAT(ask("lab", "n1", temp_.path() + "/link").error_message(), HasSubstr("not a folder"));
  // Certificates that nobody asked for, and rubbish.
  grpc::ClientContext context;
  v1::InstallCertificateRequest install;
  install.set_certificate_pem(std::string(1 << 20, 'A'));
  install.set_trust_pem("x");
  install.set_folder(inside);
  v1::InstallCertificateResponse installed;
  EXPECT_FALSE(stub->InstallCertificate(&context, install, &installed).ok());
  EXPECT_FALSE(std::filesystem::exists(inside + "/identity.pem"));
  ExpectServed();
}

TEST_F(Security, AnotherUserIsTurnedAway) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  std::filesystem::permissions(temp_.path(), std::filesystem::perms::all);
  std::filesystem::permissions(state_dir(), std::filesystem::perms::all);
  std::filesystem::permissions(socket_path(), std::filesystem::perms::all);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (setgroups(0, nullptr) != 0 || setgid(12345) != 0 || setuid(12345) != 0) _exit(2);
    const auto fd = ConnectUnix(socket_path());
    if (!fd.ok()) _exit(3);
    char byte = 0;
    for (int i = 0; i < 500; ++i) {
      const ssize_t n = recv(fd->get(), &byte, 1, 0);
      if (n >= 0) _exit(n == 0 ? 0 : 4);
      usleep(10'000);
    }
    _exit(5);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "exit code " << WEXITSTATUS(status);
  ExpectServed();
}

TEST_F(Security, TwoThousandSilentConnectionsKeepNobodyOut) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < 4096) GTEST_SKIP() << "too few descriptors";
  limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, 4096);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<UniqueFd> silent;
  while (silent.size() < 2000) {
    auto fd = ConnectUnix(socket_path());
    if (absl::IsResourceExhausted(fd.status())) continue;  // its queue is full for the moment
    ASSERT_TRUE(fd.ok()) << fd.status();
    silent.push_back(*std::move(fd));
  }
  ExpectServed();
  const std::string fds = "/proc/" + std::to_string(daemon_->pid()) + "/fd";
  EXPECT_LT(std::distance(std::filesystem::directory_iterator(fds), {}), 400);
}

}  // namespace
}  // namespace muster::testing
