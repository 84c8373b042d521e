#include "trainer/loop/error_record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "trainer/checkpoint/safetensors.h"
#include "trainer/data/data_error.h"

namespace muster::loop {
namespace {

template <class Error>
Failure FailureOf(const Error& error) {
  try {
    throw error;
  } catch (...) {
    return CurrentFailure();
  }
}

TEST(Failure, EveryCauseHasItsCode) {
  EXPECT_EQ(FailureOf(ConfigError("x")).code, ExitCode::kConfig);
  EXPECT_EQ(FailureOf(data::DataError("x")).code, ExitCode::kData);
  EXPECT_EQ(FailureOf(CommError("x")).code, ExitCode::kComm);
  EXPECT_EQ(FailureOf(NanError("x")).code, ExitCode::kNan);
  EXPECT_EQ(FailureOf(CheckpointError("x")).code, ExitCode::kCheckpoint);
  EXPECT_EQ(FailureOf(checkpoint::SafetensorsError("f", 3, "x")).code, ExitCode::kCheckpoint);
  EXPECT_EQ(FailureOf(std::runtime_error("x")).code, ExitCode::kInternal);
  EXPECT_EQ(FailureOf(5).code, ExitCode::kInternal);
  EXPECT_EQ(FailureOf(NanError("iteration 3")).message, "iteration 3");
  EXPECT_EQ(FailureOf(NanError("x")).kind, "nan");
}

TEST(ErrorRecord, HasTorchrunsShape) {
  const auto record =
      nlohmann::json::parse(ErrorRecord(FailureOf(NanError("bad \xff byte")), 3, 1700000000));
  const auto& message = record.at("message");
  EXPECT_TRUE(message.at("message").get<std::string>().starts_with("nan: bad "));
  EXPECT_EQ(message.at("errorCode"), 72);
  EXPECT_EQ(message.at("extraInfo").at("timestamp"), "1700000000");
  EXPECT_EQ(message.at("extraInfo").at("rank"), 3);
}

}  // namespace
}  // namespace muster::loop
