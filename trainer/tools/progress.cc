#include "trainer/tools/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace muster::tools {
namespace {

constexpr std::chrono::milliseconds kRedraw{200};
constexpr size_t kBarWidth = 24;
constexpr double kMega = 1e6;

std::string Bytes(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  return value < 1e9 ? fmt::format("{:.1f} MB", value / kMega)
                     : fmt::format("{:.2f} GB", value / 1e9);
}

std::string Clock(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

std::string FormatBar(const BarFacts& facts) {
  const double seconds = std::max(facts.seconds, 1e-9);
  const std::string speed = fmt::format("{:.1f} MB/s  {:.2f} M tokens/s",
                                        static_cast<double>(facts.characters) / seconds / kMega,
                                        static_cast<double>(facts.tokens) / seconds / kMega);
  if (facts.size <= 0) return fmt::format("{}  {}", Bytes(facts.taken), speed);
  const double done =
      std::min(1.0, static_cast<double>(facts.taken) / static_cast<double>(facts.size));
  const auto filled = static_cast<size_t>(done * kBarWidth);
  const double rate = static_cast<double>(facts.taken - facts.taken_at_start) / seconds;
  const auto rest = static_cast<double>(std::max<int64_t>(facts.size - facts.taken, 0));
  return fmt::format("[{}{}] {:3.0f}%  {} of {}  {}  {} left", std::string(filled, '#'),
                     std::string(kBarWidth - filled, '-'), 100 * done, Bytes(facts.taken),
                     Bytes(facts.size), speed, rate > 0 ? Clock(rest / rate) : "?");
}

Progress::Progress(ProgressStyle style, int64_t interval, int64_t size, int64_t taken)
    : style_(style), interval_(interval), size_(size), taken_at_start_(taken), taken_(taken) {}

double Progress::Seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Progress::Add(int64_t documents, int64_t characters, int64_t tokens, int64_t taken) {
  const int64_t before = documents_;
  documents_ += documents;
  characters_ += characters;
  tokens_ += tokens;
  taken_ = taken;
  if (style_ == ProgressStyle::kBar) {
    Draw();
  } else if (style_ == ProgressStyle::kLines && documents_ / interval_ > before / interval_) {
    PrintLine(documents_ / interval_ * interval_);
  }
}

void Progress::PrintLine(int64_t documents) const {
  const double seconds = std::max(Seconds(), 1e-9);
  const double megabytes = static_cast<double>(characters_) / 1024 / 1024;
  fmt::print(stderr, "Processed {} documents ({} docs/s, {} MB/s).\n", documents,
             static_cast<double>(documents) / seconds, megabytes / seconds);
}

void Progress::Draw() {
  const auto now = std::chrono::steady_clock::now();
  if (now - drawn_ < kRedraw) return;
  drawn_ = now;
  fmt::print(stderr, "\r{}\x1b[K",
             FormatBar({size_, taken_, taken_at_start_, characters_, tokens_, Seconds()}));
}

void Progress::Clear() {
  if (style_ == ProgressStyle::kBar) fmt::print(stderr, "\r\x1b[K");
}

void Progress::Finish() {
  if (style_ == ProgressStyle::kLines) PrintLine(documents_);
  if (style_ != ProgressStyle::kBar) return;
  drawn_ = {};
  Draw();
  fmt::print(stderr, "\n");
}

}  // namespace muster::tools
