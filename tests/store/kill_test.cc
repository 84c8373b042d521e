#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controller/store/reader.h"
#include "controller/store/store.h"
#include "tests/store/sample.h"
#include "tests/store/temp_dir.h"

// The store against `kill -9`: everything that Commit() has returned for is there, nothing is there
// by halves.

namespace muster::testing {
namespace {

// Commits events for ever, and tells of each commit after it has returned.
[[noreturn]] void WriteForEver(const std::string& dir, int tell) {
  auto store = store::Store::Open(dir);
  if (!store.ok()) ::_exit(1);
  store::Batch batch;
  batch.jobs = {SampleJob(1)};
  for (uint64_t i = 1;; i += 2) {
    batch.events = {{1, SampleEvent(i)}, {1, SampleEvent(i + 1)}};
    if (!(*store)->Commit(batch).ok()) ::_exit(2);
    const uint64_t last = i + 1;
    if (::write(tell, &last, sizeof last) != sizeof last) ::_exit(3);
  }
}

TEST(StoreKill, CommittedRowsSurvive) {
  for (int round = 1; round <= 5; ++round) {
    TempDir dir;
    int pipe_fds[2];
    ASSERT_EQ(::pipe(pipe_fds), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) WriteForEver(dir.path(), pipe_fds[1]);
    ::close(pipe_fds[1]);
    uint64_t told = 0;
    while (told < static_cast<uint64_t>(40 * round)) {
      ASSERT_EQ(::read(pipe_fds[0], &told, sizeof told), static_cast<ssize_t>(sizeof told));
    }
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    uint64_t more = 0;
    while (::read(pipe_fds[0], &more, sizeof more) == static_cast<ssize_t>(sizeof more))
      told = more;
    ::close(pipe_fds[0]);

    ASSERT_TRUE(store::Store::Open(dir.path()).ok());
    auto reader = store::Reader::Open(dir.path());
    ASSERT_TRUE(reader.ok());
    const auto events = (*reader)->EventsAfter(1, 0);
    ASSERT_TRUE(events.ok());
    EXPECT_GE(events->size(), told);
    EXPECT_EQ(events->size() % 2, 0u) << "half a batch";
    for (size_t i = 0; i < events->size(); ++i) ASSERT_EQ((*events)[i].sequence(), i + 1);
  }
}

}  // namespace
}  // namespace muster::testing
