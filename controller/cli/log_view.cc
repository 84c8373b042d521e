#include "controller/cli/log_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/utf8.h"
#include "controller/cli/log_lines.h"
#include "controller/cli/text.h"

namespace muster::cli {
namespace {

constexpr size_t kLongestLine = 64 << 10;
constexpr auto kHalfLineDelay = std::chrono::milliseconds(200);
constexpr auto kSwitchDelay = std::chrono::seconds(1);

// Nothing in it that would be shown as \xNN, apart from CR.
bool IsPlain(std::string_view text) {
  return IsValidUtf8(text) && std::none_of(text.begin(), text.end(), [](unsigned char c) {
           return (c < 0x20 && c != '\t' && c != '\r' && c != '\x1b') || c == 0x7F;
         });
}

// What is left to see of a line that CRs have overwritten: the newest state. Binary data is left
// whole.
std::string_view NewestState(std::string_view line) {
  const size_t end = line.find_last_not_of('\r');
  if (end == std::string_view::npos) return {};
  line = line.substr(0, end + 1);
  const size_t cr = line.rfind('\r');
  if (cr == std::string_view::npos || !IsPlain(line.substr(0, cr))) return line;
  return line.substr(cr + 1);
}

}  // namespace

LogView::LogView(uint32_t world, Style style, Write write, bool times)
    : width_(static_cast<int>(std::to_string(std::max(world, 1U) - 1).size())),
      style_(style),
      write_(std::move(write)),
      times_(times) {}

std::string LogView::Tag(const Key& key) const {
  const bool err = key.second == v1::STREAM_STDERR;
  const auto half = halves_.find(key);
  const std::string time =
      times_ && half != halves_.end() ? style_.Dim(FormatMoment(half->second.time_ns)) + " " : "";
  return time +
         style_.Rank(key.first, fmt::format("[{:>{}}]{}", key.first, width_, err ? "!" : " ")) +
         (err ? " " : "");
}

void LogView::CloseOpen() {
  if (!open_) return;
  write_("\n");
  open_.reset();
  open_text_.clear();
}

void LogView::Show(const Key& key, std::string_view line, bool finished) {
  std::string text = EscapeForDisplay(NewestState(line));
  if (open_ == key) {
    const std::string_view view = text;
    if (view.substr(0, open_text_.size()) == open_text_) {
      write_(view.substr(open_text_.size()));
    } else {
      write_((style_.colour() ? "\r\x1b[K" : "\r") + Tag(key) + text);
    }
  } else {
    CloseOpen();
    write_(Tag(key) + text);
  }
  open_ = key;
  open_text_ = std::move(text);
  if (finished) CloseOpen();
}

void LogView::Append(const v1::LogsResponse& chunk, Clock::time_point now) {
  const Key key(chunk.rank(), chunk.stream());
  if (attempt_ != chunk.attempt()) BeginAttempt(chunk.attempt());
  Half& half = halves_[key];
  std::string_view data = chunk.data();
  if (half.next_offset && chunk.offset() < *half.next_offset) {
    data.remove_prefix(std::min<uint64_t>(*half.next_offset - chunk.offset(), data.size()));
  }
  if (data.empty()) return;
  uint64_t offset = chunk.offset() + chunk.data().size() - data.size();
  if (!half.bytes.empty() && half.next_offset && offset > *half.next_offset) {
    Show(key, half.bytes, true);  // lines between were left out by a filter
    half.bytes.clear();
  }
  half.next_offset = chunk.offset() + chunk.data().size();

  int next_time = 0;
  while (!data.empty()) {
    if (half.bytes.empty()) half.time_ns = TimeInRun(chunk, offset, next_time);
    const size_t newline = data.find('\n');
    const size_t room = kLongestLine - half.bytes.size();
    const size_t take = std::min({newline == std::string_view::npos ? data.size() : newline, room});
    half.bytes.append(data.substr(0, take));
    data.remove_prefix(take);
    const bool ended = !data.empty() && data.front() == '\n';
    if (ended) data.remove_prefix(1);
    offset += take + (ended ? 1 : 0);
    if (ended || half.bytes.size() >= kLongestLine) {
      Show(key, half.bytes, true);
      half.bytes.clear();
      half.unshown.reset();
    }
  }
  if (!half.bytes.empty() && !half.unshown) half.unshown = now;
}

void LogView::BeginAttempt(uint32_t attempt) {
  if (attempt_) Finish();
  halves_.clear();
  if (attempt_ || attempt > 0) Message(style_.Dim(fmt::format("--- attempt {} ---", attempt)));
  attempt_ = attempt;
}

void LogView::Tick(Clock::time_point now) {
  for (auto& [key, half] : halves_) {
    if (!half.unshown || now - *half.unshown < kHalfLineDelay) continue;
    if (open_ && open_ != key && now - opened_ < kSwitchDelay) continue;
    if (open_ != key) opened_ = now;
    Show(key, half.bytes, false);
    half.unshown.reset();
  }
}

void LogView::Message(std::string_view line) {
  CloseOpen();
  write_(std::string(line) + "\n");
}

void LogView::Finish() {
  for (auto& [key, half] : halves_) {
    if (!half.bytes.empty()) Show(key, half.bytes, true);
    half.bytes.clear();
    half.unshown.reset();
  }
  CloseOpen();
}

}  // namespace muster::cli
