#include "controller/why/error_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::why {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<LogLine> Err(const std::vector<std::string>& texts) {
  std::vector<LogLine> lines;
  for (const auto& text : texts) lines.push_back({true, text});
  return lines;
}

TEST(ErrorLine, IsTheEndOfATraceback) {
  EXPECT_EQ(
      ErrorLine(Err({"Traceback (most recent call last):", "  File \"x.py\", line 3",
                     "    raise ValueError(3)", "ValueError: bad shape", "[rank0]: cleaning up"})),
      "ValueError: bad shape");
  EXPECT_EQ(ErrorLine(Err({"torch.OutOfMemoryError: CUDA out of memory. Tried"})),
            "torch.OutOfMemoryError: CUDA out of memory. Tried");
  EXPECT_EQ(ErrorLine(Err({"Traceback", "KeyboardInterrupt"})), "KeyboardInterrupt");
}

TEST(ErrorLine, IsWhatAnUncaughtExceptionSays) {
  EXPECT_EQ(ErrorLine(Err({"terminate called after throwing an instance of 'std::runtime_error'",
                           "  what():  NCCL error: unhandled"})),
            "  what():  NCCL error: unhandled");
}

TEST(ErrorLine, IsElseTheLineThatSaysErrorOrTheLastOne) {
  EXPECT_EQ(ErrorLine(Err({"muster-train: rank 0: data error: x.idx is cut", "bye"})),
            "muster-train: rank 0: data error: x.idx is cut");
  EXPECT_EQ(ErrorLine(Err({"one", "two", "  "})), "two");
  EXPECT_EQ(ErrorLine({{true, "of stderr"}, {false, "of stdout"}}), "of stderr");
  EXPECT_EQ(ErrorLine({{false, "step 6 of 100"}}), "");  // ordinary output is no error
  EXPECT_EQ(ErrorLine({{false, "error: no such step"}}), "error: no such step");
  EXPECT_EQ(ErrorLine({}), "");
}

TEST(CallStack, IsThatOfTorchrunsRecord) {
  EXPECT_THAT(
      CallStack(R"({"message": {"message": "E", "extraInfo": {"py_callstack": "a\n\nb\nc"}}})", 2),
      ElementsAre("b", "c"));
  EXPECT_THAT(CallStack(R"({"message": {"extraInfo": {"py_callstack": "one line"}}})", 9),
              IsEmpty());
  EXPECT_THAT(CallStack(R"({"message": "E"})", 9), IsEmpty());
  EXPECT_THAT(CallStack("[1", 9), IsEmpty());
}

}  // namespace
}  // namespace muster::why
