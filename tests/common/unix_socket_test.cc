// Who may listen where we connect.
#include "common/unix_socket.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace muster {
namespace {

class UnixSocketTest : public ::testing::Test {
 protected:
  UnixSocketTest() {
    std::string name = "/tmp/muster-unix-XXXXXX";
    folder_ = mkdtemp(name.data());
    path_ = folder_ + "/x.sock";
  }
  ~UnixSocketTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  std::string path_;
};

TEST_F(UnixSocketTest, ConnectsToAListenerOfThisUser) {
  EXPECT_TRUE(absl::IsNotFound(ConnectUnix(path_).status()));
  auto listener = ListenUnix(path_);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_TRUE(ConnectUnix(path_).ok());
  listener->reset();
  EXPECT_TRUE(absl::IsUnavailable(ConnectUnix(path_).status()));
}

TEST_F(UnixSocketTest, RefusesAListenerOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(chown(folder_.c_str(), kNobody, kNobody), 0);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t other = fork();
  if (other == 0) {
    if (setuid(kNobody) != 0) _exit(1);
    const auto listener = ListenUnix(path_);
    const char yes = listener.ok() ? 'y' : 'n';
    (void)!write(ready[1], &yes, 1);
    pause();
    _exit(0);
  }
  close(ready[1]);
  char answer = 'n';
  EXPECT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_TRUE(absl::IsPermissionDenied(ConnectUnix(path_).status()));
  close(ready[0]);
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}

}  // namespace
}  // namespace muster
