#include "common/status.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(PosixError, NamesWhatWasTriedAndWhyItFailed) {
  const absl::Status status = PosixError("open /x", ENOENT);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "open /x: No such file or directory");
}

TEST(Annotate, KeepsTheCodeAndLeavesOkAlone) {
  EXPECT_TRUE(Annotate(absl::OkStatus(), "job 3").ok());
  const absl::Status status = Annotate(absl::NotFoundError("no file"), "job 3");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "job 3: no file");
}

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return absl::InvalidArgumentError("odd");
  return n / 2;
}

absl::StatusOr<int> Quarter(int n) {
  MUSTER_ASSIGN_OR_RETURN(const int half, Half(n));
  return Half(half);
}

absl::Status Check(int n) {
  MUSTER_RETURN_IF_ERROR(Quarter(n).status());
  return absl::OkStatus();
}

TEST(Macros, PassTheValueOrReturnTheError) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_EQ(Quarter(3).status().message(), "odd");
  EXPECT_EQ(Check(6).message(), "odd");
  EXPECT_TRUE(Check(4).ok());
}

}  // namespace
}  // namespace muster
