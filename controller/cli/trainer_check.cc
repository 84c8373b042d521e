#include "controller/cli/trainer_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/spawn.h"
#include "common/unique_fd.h"
#include "controller/plan/planner.h"
#include "controller/plan/trainer_flags.h"

namespace muster::cli {
namespace {

constexpr int kConfigError = 64;  // docs/exit-codes.md
constexpr auto kTimeout = std::chrono::seconds(20);
constexpr auto kPoll = std::chrono::milliseconds(5);

// Our environment with the rank's variables before it: the first of a name counts for getenv.
std::vector<std::string> Environment(const v1::RankSpec& rank) {
  std::vector<std::string> out;
  out.reserve(static_cast<size_t>(rank.env_size()));
  for (const v1::EnvVar& variable : rank.env()) {
    out.push_back(variable.name() + "=" + variable.value());
  }
  for (char** entry = environ; *entry != nullptr; ++entry) out.emplace_back(*entry);
  return out;
}

// The exit code, or nothing if it could not be run or did not exit.
std::optional<int> Run(const v1::RankSpec& rank, int error_fd) {
  std::vector<std::string> words(rank.argv().begin(), rank.argv().end());
  words.emplace_back("--print-config");
  const auto pid = Spawn({.words = std::move(words),
                          .environment = Environment(rank),
                          .folder = rank.working_dir(),
                          .err = error_fd});
  if (!pid.ok()) return std::nullopt;

  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  int status = 0;
  while (waitpid(*pid, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) kill(*pid, SIGKILL);
    std::this_thread::sleep_for(kPoll);
  }
  return WIFEXITED(status) ? std::optional<int>(WEXITSTATUS(status)) : std::nullopt;
}

// What it wrote, without the words that say who writes: "muster-train: rank 0: config error: ...".
std::string Complaint(int fd) {
  std::array<char, 4096> text{};
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  std::string out(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
  constexpr std::string_view kMark = "config error: ";
  if (const size_t mark = out.find(kMark); mark != std::string::npos) {
    out.erase(0, mark + kMark.size());
  }
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

// Says how layers lie over a layout, and nothing without one.
bool IsLayoutFlag(const v1::Flag& flag) {
  return flag.name().find("pipeline") != std::string::npos || flag.name() == "sequence-parallel";
}

}  // namespace

absl::Status CheckTrainerFlags(const v1::JobSpec& spec, const v1::Plan& plan) {
  if (!plan::IsTrainer(spec)) return absl::OkStatus();
  plan::Launch launch;
  launch.master_port = 1;
  launch.run_id = "check";
  const auto rank = plan::MakeRankSpec(spec, plan, 0, launch);
  if (!rank.ok()) return rank.status();
  const UniqueFd errors(memfd_create("errors", MFD_CLOEXEC));
  if (!errors || Run(*rank, errors.get()) != kConfigError) return absl::OkStatus();
  const std::string complaint = Complaint(errors.get());
  // A file that is not here may well be on the nodes: preflight looks there.
  if (complaint.starts_with("open ")) return absl::OkStatus();
  return absl::InvalidArgumentError("muster-train: " + complaint);
}

absl::StatusOr<std::string> TrainerRemark(const v1::JobSpec& spec, const v1::Plan& plan) {
  const absl::Status strict = CheckTrainerFlags(spec, plan);
  if (strict.ok()) return "";
  v1::JobSpec plain = spec;
  auto& flags = *plain.mutable_flags();
  flags.erase(std::remove_if(flags.begin(), flags.end(), IsLayoutFlag), flags.end());
  v1::Parallel& sizes = *plain.mutable_parallel();
  sizes.Clear();
  sizes.set_micro_batch(plan.micro_batch());
  sizes.set_num_microbatches(1);
  const auto plain_plan = plan::MakePlan(plain);
  if (!plain_plan.ok() || !CheckTrainerFlags(plain, *plain_plan).ok()) return strict;
  return std::string(strict.message());
}

}  // namespace muster::cli
