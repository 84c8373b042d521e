#include "common/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

bool IsOpen(int fd) {
  return fcntl(fd, F_GETFD) >= 0;
}

TEST(UniqueFd, ClosesItsDescriptor) {
  int raw;
  {
    const UniqueFd fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    raw = fd.get();
    EXPECT_TRUE(IsOpen(raw));
  }
  EXPECT_FALSE(IsOpen(raw));
}

TEST(UniqueFd, MovesAndReleasesOwnership) {
  UniqueFd a(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int raw = a.get();
  UniqueFd b(std::move(a));
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): moved-from is empty by contract
  EXPECT_EQ(b.get(), raw);
  EXPECT_EQ(b.release(), raw);
  EXPECT_FALSE(b);
  EXPECT_TRUE(IsOpen(raw));
  close(raw);
}

TEST(UniqueFd, SelfMoveKeepsTheDescriptor) {
  UniqueFd fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  UniqueFd& same = fd;
  fd = std::move(same);
  EXPECT_TRUE(IsOpen(fd.get()));
}

}  // namespace
}  // namespace muster
