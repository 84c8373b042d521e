// The node's small binary files: what was written comes back, and no damage goes unnoticed.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>

#include "tests/worker/worker_testing.h"
#include "worker/ranks/rank_folder.h"
#include "worker/shim/frame.h"
#include "worker/shim/rank_spec.h"
#include "worker/shim/shim_status.h"

namespace muster::shim {
namespace {

RankSpec SomeSpec() {
  RankSpec spec;
  spec.argv = {"python", "", std::string("a b\xff\n", 5)};
  spec.env = {{"PATH", "/bin"}, {"EMPTY", ""}, {"RAW", "\x80\x81"}};
  spec.working_dir = "/data";
  spec.cgroup_procs = "/sys/fs/cgroup/x/cgroup.procs";
  spec.cpus = {0, 7, 200};
  return spec;
}

ShimStatus SomeStatus() {
  ShimStatus status;
  status.state = ShimState::kExited;
  status.shim_pid = 12;
  status.shim_start_ticks = 1ull << 40;
  status.rank_pid = 13;
  status.started_ns = 1'700'000'000'000'000'001;
  status.ended_ns = 1'700'000'000'000'000'002;
  status.exit_code = 139;
  status.signal = 11;
  status.core_dumped = true;
  status.term_sent = true;
  status.error = "some error";
  status.log_waits = true;
  status.childless = true;
  status.streams[0] = {5, 0, true};
  status.streams[1] = {1ull << 50, 7, true};
  return status;
}

// `decode` must accept `good` and refuse every single-bit change and every shorter version of it.
template <typename Decode>
void ExpectDamageIsSeen(const std::string& good, Decode decode) {
  std::string error;
  ASSERT_TRUE(decode(good, error)) << error;
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      error.clear();
      EXPECT_FALSE(decode(bad, error)) << "byte " << i << " bit " << bit;
      EXPECT_FALSE(error.empty());
    }
    EXPECT_FALSE(decode(good.substr(0, i), error)) << "cut at " << i;
  }
  EXPECT_FALSE(decode(good + '\0', error));
}

TEST(RankSpecFormat, RoundTrip) {
  std::string error;
  EXPECT_EQ(DecodeRankSpec(EncodeRankSpec(SomeSpec()), error), SomeSpec());
}

TEST(RankSpecFormat, DamageIsSeen) {
  ExpectDamageIsSeen(EncodeRankSpec(SomeSpec()), [](const std::string& bytes, std::string& error) {
    return DecodeRankSpec(bytes, error).has_value();
  });
}

TEST(RankSpecFormat, WhatCannotBeExecutedIsRefused) {
  std::string error;
  EXPECT_FALSE(DecodeRankSpec(EncodeRankSpec({}), error));
  EXPECT_EQ(error, "no command");
  RankSpec spec = SomeSpec();
  spec.argv[1] = std::string("a\0b", 3);
  EXPECT_FALSE(DecodeRankSpec(EncodeRankSpec(spec), error));
  EXPECT_EQ(error, "a NUL byte inside an argument");
  spec = SomeSpec();
  spec.env.emplace_back("A=B", "c");
  EXPECT_FALSE(DecodeRankSpec(EncodeRankSpec(spec), error));
  EXPECT_EQ(error, "environment variable 'A=B' is not NAME=VALUE");
}

RC_GTEST_PROP(RankSpecFormat, AnyValidSpecRoundTrips, ()) {
  const auto word = rc::gen::container<std::string>(rc::gen::nonZero<char>());
  RankSpec spec;
  spec.argv = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(word));
  for (const std::string& value : *rc::gen::container<std::vector<std::string>>(word)) {
    spec.env.emplace_back("N" + std::to_string(spec.env.size()), value);
  }
  spec.working_dir = *word;
  std::string error;
  RC_ASSERT(DecodeRankSpec(EncodeRankSpec(spec), error) == spec);
}

RC_GTEST_PROP(RankSpecFormat, GarbageInsideAGoodFrameIsHarmless, (const std::string& garbage)) {
  std::string error;
  DecodeRankSpec(EncodeFrame("MUSTSPEC", 2, garbage), error);
  DecodeShimStatus(EncodeFrame("MUSTEXIT", 1, garbage), error);
  DecodeShimStatus(EncodeFrame("MUSTEXIT", 2, garbage), error);
}

TEST(ExitRecordFormat, RoundTrip) {
  std::string error;
  EXPECT_EQ(DecodeShimStatus(EncodeShimStatus(SomeStatus()), error), SomeStatus());
}

// Shims live on when their daemon's programs are replaced.
TEST(ExitRecordFormat, TheFormerVersionIsRead) {
  const ShimStatus status = SomeStatus();
  const std::string now = EncodeShimStatus(status);
  std::string payload = now.substr(kFrameHeaderSize);
  payload.resize(payload.size() - 2);  // log_waits and childless
  std::string error;
  ShimStatus expected = status;
  expected.log_waits = false;
  expected.childless = false;
  EXPECT_EQ(DecodeShimStatus(EncodeFrame("MUSTEXIT", 1, payload), error), expected) << error;
}

TEST(ExitRecordFormat, DamageIsSeen) {
  ExpectDamageIsSeen(EncodeShimStatus(SomeStatus()),
                     [](const std::string& bytes, std::string& error) {
                       return DecodeShimStatus(bytes, error).has_value();
                     });
}

TEST(Frame, KnownBytes) {
  // docs/formats.md shows these: they are on disks.
  EXPECT_EQ(Crc32("123456789"), 0xcbf43926u);
  EXPECT_EQ(EncodeFrame("MUSTTEST", 3, "ab"),
            std::string("MUSTTEST\x03\0\0\0\x6d\x48\x83\x9e\x02\0\0\0\0\0\0\0ab", 26));
}

TEST(Frame, AtomicWriteLeavesOldOrNew) {
  testing::TempDir dir;
  const std::string path = dir.path() + "/f";
  std::string error;
  ASSERT_TRUE(WriteFileAtomic(path, "old", error));
  ASSERT_TRUE(WriteFileAtomic(path, "new", error));
  EXPECT_EQ(ReadWholeFile(path, 10, error), "new");
  EXPECT_FALSE(ReadWholeFile(path, 2, error));
  EXPECT_EQ(error, path + ": larger than 2 bytes");
  EXPECT_FALSE(WriteFileAtomic(dir.path() + "/no/f", "x", error));
  EXPECT_EQ(error, "create " + dir.path() + "/no/f.tmp: No such file or directory");
}

TEST(AttemptRecordFormat, DamageIsDataLoss) {
  testing::TempDir dir;
  const std::string folder = dir.path() + "/attempt_0";
  worker::AttemptRecord record;
  *record.mutable_id() = testing::Id("7");
  record.set_generation(5);
  ASSERT_TRUE(ranks::SaveRecord(folder, record).ok());
  EXPECT_EQ(ranks::LoadRecord(folder)->generation(), 5u);
  std::string error;
  std::string bytes = *ReadWholeFile(folder + "/attempt", 1000, error);
  bytes.back() ^= 1;
  ASSERT_TRUE(WriteFileAtomic(folder + "/attempt", bytes, error));
  EXPECT_EQ(ranks::LoadRecord(folder).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ranks::LoadRecord(dir.path()).status().code(), absl::StatusCode::kNotFound);
  // There, but it cannot be read: that must not look like "nothing was accepted".
  ASSERT_EQ(mkdir((dir.path() + "/attempt").c_str(), 0700), 0);
  EXPECT_EQ(ranks::LoadRecord(dir.path()).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace muster::shim
