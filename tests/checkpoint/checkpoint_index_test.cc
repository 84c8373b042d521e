#include "trainer/checkpoint/checkpoint_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/config/error.h"

namespace muster::checkpoint {
namespace {

CheckpointIndex Sample() {
  CheckpointIndex index;
  index.progress = {10, 80, 32, 10};
  index.schedule = {{"lr", "0.001"}};
  index.arguments = {{"seed", "1234"}};
  index.shards = {{"shard_00000.safetensors", 1000, 0xe3069283}, {"shard_00001.safetensors", 7, 1}};
  index.tensors["model.a"] = {"F32", {4, 3}, {{0, {0, 0}, {2, 3}}, {1, {2, 0}, {2, 3}}}};
  index.tensors["scalar"] = {"F64", {}, {{1, {}, {}}}};
  return index;
}

TEST(CheckpointIndex, RoundTrip) {
  EXPECT_EQ(IndexFromJson(ToJson(Sample())), Sample());
}

void ExpectRefused(const std::string& from, const std::string& to, const std::string& reason) {
  std::string text = ToJson(Sample());
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  try {
    IndexFromJson(text);
    ADD_FAILURE() << "accepted: " << to;
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(reason));
  }
}

TEST(CheckpointIndex, RefusesWhatCantBeTrusted) {
  ExpectRefused("muster-checkpoint", "other", "not a muster-checkpoint");
  ExpectRefused("\"version\": 1", "\"version\": 2", "version 2");
  ExpectRefused("shard_00000.safetensors", "../shard", "shard name");
  ExpectRefused("shard_00000.safetensors", ".hidden", "shard name");
  ExpectRefused("e3069283", "e306928", "crc32c");
  ExpectRefused("\"shard\": 1", "\"shard\": 9", "no such shard");
  ExpectRefused("\"iteration\"", "\"iterations\"", "iteration");
}

TEST(CheckpointIndex, PartsMustMakeUpTheWhole) {
  const auto refused = [](const CheckpointIndex& index) {
    EXPECT_THROW(IndexFromJson(ToJson(index)), CheckpointError);
  };
  CheckpointIndex missing = Sample();
  missing.tensors["model.a"].parts.pop_back();
  refused(missing);
  CheckpointIndex outside = Sample();
  outside.tensors["model.a"].parts[1].offset = {3, 0};
  refused(outside);
  CheckpointIndex negative = Sample();
  negative.tensors["model.a"].parts[1].offset = {-1, 0};
  refused(negative);
}

TEST(CheckpointIndex, EveryCutOfTheTextIsRefused) {
  const std::string text = ToJson(Sample());
  for (size_t n = 0; n + 2 < text.size(); n += 7) {
    EXPECT_THROW(IndexFromJson(text.substr(0, n)), CheckpointError) << n;
  }
}

}  // namespace
}  // namespace muster::checkpoint
