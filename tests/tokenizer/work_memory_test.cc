#include "trainer/tokenizer/work_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {
namespace {

using ::testing::StartsWith;

constexpr size_t kMib = size_t{1} << 20;

TEST(WorkMemory, IsNeverExceeded) {
  WorkMemory memory(10 * kMib, "ask for more");
  std::atomic<size_t> taken = 0;
  std::atomic<bool> exceeded = false;
  std::vector<std::thread> threads;
  for (size_t t = 1; t <= 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const WorkMemory::Hold hold = memory.Take(t * kMib / 2, 2, "a text");
        if (t > 1 && taken.fetch_add(t) + t > 10) exceeded = true;  // 1 MiB is free
        if (t > 1) taken -= t;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(exceeded);
  EXPECT_EQ(taken, 0U);
}

TEST(WorkMemory, SaysWhatIsTooMuch) {
  WorkMemory memory(10 * kMib, "ask for more");
  const auto all = memory.Take(2 * kMib, 5, "a text");
  const auto free = memory.Take(kMib / 5, 5, "a text");  // does not wait
  try {
    memory.Take(2 * kMib + 1, 5, "a text");
    FAIL();
  } catch (const TokenizerError& error) {
    EXPECT_THAT(error.what(),
                StartsWith("a text of 2.00 MiB, which takes about 5 bytes of memory"));
    EXPECT_THAT(error.what(), ::testing::EndsWith("the limit is 2.00 MiB; ask for more"));
  }
}

}  // namespace
}  // namespace muster::tokenizer
