#include "controller/why/rank_words.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>

#include "controller/logs/fs_user.h"
#include "controller/logs/reader.h"

namespace muster::why {
namespace {

constexpr uint64_t kTailLines = 200;  // of each stream of a cause
constexpr uint64_t kLastLines = 5;    // blank ones do not count
constexpr uint64_t kEventLines = 3;   // the error event may be followed by an exit event
constexpr size_t kMaxLine = 2000;
constexpr size_t kMaxTail = 200;

using TakeLine = std::function<void(const v1::LogsResponse& run, std::string line)>;

// What a terminal would show at last: a progress bar overwrites itself.
std::string Settled(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  const size_t back = line.rfind('\r');
  if (back != std::string_view::npos) line.remove_prefix(back + 1);
  return std::string(line.substr(0, kMaxLine));
}

// The last lines of some streams, in the order in which they were written.
void ReadLast(const v1::Job& job, const v1::LogsRequest& request, const TakeLine& take) {
  auto reader = logs::Reader::Make(job.output_dir(), job.attempt(), job.plan(), request);
  if (!reader.ok() || !(*reader)->ExtendFromFiles(/*ended=*/true).ok()) return;
  while (true) {
    const auto run = (*reader)->Next(std::chrono::steady_clock::now());
    if (!run.ok() || !*run) return;
    std::string_view rest = (*run)->data();
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size() - 1);
      take(**run, Settled(rest.substr(0, end + 1)));
      rest.remove_prefix(end + 1);
    }
  }
}

v1::LogsRequest Ask(std::initializer_list<v1::Stream> streams, uint64_t lines) {
  v1::LogsRequest request;
  for (const v1::Stream stream : streams) request.add_streams(stream);
  request.set_tail_lines(lines);
  return request;
}

}  // namespace

std::optional<int64_t> IterationOf(const std::string& line) {
  if (!line.empty() && line[0] == '{') {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("iteration")) return std::nullopt;
    if (!json["iteration"].is_number_integer()) return std::nullopt;
    return json["iteration"].get<int64_t>();
  }
  constexpr std::string_view kWord = "iteration ";
  const size_t at = line.find(kWord);
  if (at == std::string::npos) return std::nullopt;
  const size_t slash = line.find('/', at);
  if (slash == std::string::npos) return std::nullopt;
  int64_t number = 0;
  const std::string text = line.substr(at + kWord.size(), slash - at - kWord.size());
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &number)) return std::nullopt;
  return number;
}

Words ReadWords(const v1::Job& job, const std::vector<uint32_t>& tails) {
  Words words;
  if (job.plan().ranks().empty()) return words;
  const logs::ScopedFsUser user(job.spec().submitter_uid(), job.spec().submitter_gid());
  ReadLast(job, Ask({v1::STREAM_STDOUT, v1::STREAM_STDERR}, kLastLines),
           [&](const v1::LogsResponse& run, std::string line) {
             RankWords& its = words[run.rank()];
             if (const auto iteration = IterationOf(line)) its.iteration = iteration;
             if (!absl::StripAsciiWhitespace(line).empty()) {
               its.last = LogLine{run.stream() == v1::STREAM_STDERR, std::move(line)};
             }
           });
  ReadLast(job, Ask({v1::STREAM_EVENTS}, kEventLines),
           [&](const v1::LogsResponse& run, const std::string& line) {
             RankWords& its = words[run.rank()];
             if (const auto iteration = IterationOf(line)) its.iteration = iteration;
             const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
             if (!json.is_object() || json.value("event", nlohmann::json()) != "error") return;
             const auto text = [&](const char* key) {
               const auto value = json.value(key, nlohmann::json());
               return value.is_string() ? value.get<std::string>() : std::string();
             };
             its.event_error = text("kind") + ": " + text("message");
           });
  if (tails.empty()) return words;
  v1::LogsRequest request = Ask({v1::STREAM_STDOUT, v1::STREAM_STDERR}, kTailLines);
  for (const uint32_t rank : tails) request.add_ranks(rank);
  ReadLast(job, request, [&](const v1::LogsResponse& run, std::string line) {
    std::vector<LogLine>& tail = words[run.rank()].tail;
    tail.push_back({run.stream() == v1::STREAM_STDERR, std::move(line)});
    if (tail.size() > 2 * kMaxTail) tail.erase(tail.begin(), tail.end() - kMaxTail);
  });
  return words;
}

}  // namespace muster::why
