#include <absl/time/clock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <string>

#include "controller/logs/file_registry.h"
#include "controller/logs/layout.h"
#include "controller/logs/merged_format.h"
#include "tests/logs/attempt.h"
#include "tests/logs/temp_dir.h"

// A controller that is killed with SIGKILL in the middle of its work, again and again, loses
// nothing that it has acknowledged and writes nothing twice.

namespace muster::logs {
namespace {

constexpr uint32_t kRanks = 3;
constexpr size_t kBytes = 3 << 20;
constexpr int kKills = 12;

// Acknowledged offsets, which outlive the process that heard of them, as a worker does.
struct Acked {
  std::array<std::atomic<uint64_t>, kRanks> offset;
};

// What a rank prints: lines of all lengths, some longer than a merged line may be, with odd bytes.
std::string Output(uint32_t rank) {
  std::mt19937 random(rank);
  std::string out;
  while (out.size() < kBytes) {
    const size_t length = random() % 50 == 0 ? random() % 150'000 : random() % 120;
    for (size_t i = 0; i < length; ++i) out += static_cast<char>(random() % 250 + 11);  // never \n
    out += '\n';
  }
  out.resize(kBytes);
  return out;
}

// A worker that sends from what was acknowledged, in chunks of any size, until it is killed or
// done.
void SendAll(const AttemptFiles& files, Acked& acked, unsigned seed) {
  auto registry = FileRegistry::Make(QuickOptions());
  if (!registry->Open(files).ok()) _exit(3);
  std::mt19937 random(seed);
  std::array<std::string, kRanks> output;
  std::array<uint64_t, kRanks> sent{};
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    output[rank] = Output(rank);
    sent[rank] = acked.offset[rank];
  }
  const auto ack = [&acked](const v1::LogAck& message) {
    acked.offset[message.rank()] = message.offset();
  };
  while (std::any_of(sent.begin(), sent.end(), [](uint64_t n) { return n < kBytes; })) {
    const uint32_t rank = random() % kRanks;
    const size_t size = random() % 30'000;
    const std::string data = output[rank].substr(sent[rank], size);
    v1::LogChunk chunk = MakeChunk(files, rank, v1::STREAM_STDOUT, sent[rank], data);
    v1::WriteTime& time = *chunk.add_times();
    time.set_offset(sent[rank]);
    time.set_realtime_ns(1);
    sent[rank] += data.size();
    registry->OnLog(HostOf(files, rank), chunk, ack);
  }
}

std::string Rebuild(const std::string& merged, uint32_t rank) {
  std::string out;
  std::string_view rest = merged;
  for (size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
    const auto line = ParseMergedLine(rest.substr(0, end), 1);
    if (!line || line->rank != rank) continue;
    out += line->text;
    if (!line->cut) out += '\n';
  }
  return out;
}

TEST(CrashTest, NothingAcknowledgedIsLostAndNothingIsWrittenTwice) {
  TempDir dir;
  const AttemptFiles files = MakeAttempt(dir.path(), 1, kRanks);
  auto* acked =
      new (mmap(nullptr, sizeof(Acked), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          Acked{};
  std::mt19937 random(1);
  for (int kill_number = 0; kill_number < kKills; ++kill_number) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      SendAll(files, *acked, static_cast<unsigned>(kill_number));
      _exit(0);
    }
    usleep(20'000 + random() % 60'000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      const std::string path = RankDir(dir.path(), 0, rank) + "/stdout.log";
      const std::string content = ReadFile(path);
      ASSERT_LE(acked->offset[rank], content.size());
      ASSERT_TRUE(Output(rank).compare(0, content.size(), content) == 0);
    }
  }
  {
    auto registry = FileRegistry::Make(QuickOptions());
    ASSERT_TRUE(registry->Open(files).ok());
    Acks acks;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      const uint64_t from = acked->offset[rank];
      registry->OnLog(
          HostOf(files, rank),
          MakeChunk(files, rank, v1::STREAM_STDOUT, from, Output(rank).substr(from), true),
          acks.Callback());
      ASSERT_TRUE(acks.WaitFor(rank, v1::STREAM_STDOUT, kBytes, true));
    }
  }
  const std::string merged = ReadFile(MergedPath(dir.path(), files.plan, 0, 0));
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    const std::string output = Output(rank);
    EXPECT_TRUE(ReadFile(RankDir(dir.path(), 0, rank) + "/stdout.log") == output) << rank;
    EXPECT_TRUE(Rebuild(merged, rank) == output) << rank;
  }
  munmap(acked, sizeof(Acked));
}

}  // namespace
}  // namespace muster::logs
