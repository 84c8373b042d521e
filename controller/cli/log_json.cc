#include "controller/cli/log_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "common/utf8.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/text.h"

namespace muster::cli {
namespace {

constexpr size_t kLongestLine = 64 << 10;

}  // namespace

void LogJson::Emit(uint32_t rank, int stream, const Half& half, bool partial) {
  nlohmann::ordered_json line;
  line["rank"] = rank;
  line["host"] = half.host;
  line["stream"] = StreamName(static_cast<v1::Stream>(stream));
  line["offset"] = half.offset;
  if (half.time_ns != 0) line["time_ns"] = half.time_ns;
  line["text"] = ToValidUtf8(half.bytes);
  if (!IsValidUtf8(half.bytes)) {
    std::string hex;
    for (const unsigned char c : half.bytes) fmt::format_to(std::back_inserter(hex), "{:02x}", c);
    line["hex"] = std::move(hex);
  }
  if (partial) line["partial"] = true;
  write_(line.dump() + "\n");
}

void LogJson::Append(const v1::LogsResponse& chunk) {
  Half& half = halves_[{chunk.rank(), chunk.stream()}];
  half.host = chunk.host();
  std::string_view data = chunk.data();
  uint64_t offset = chunk.offset();
  while (!data.empty()) {
    if (half.bytes.empty()) {
      half.offset = offset;
      half.time_ns = chunk.realtime_ns();
    }
    const size_t newline = data.find('\n');
    const size_t take = std::min(newline == std::string_view::npos ? data.size() : newline,
                                 kLongestLine - half.bytes.size());
    half.bytes.append(data.substr(0, take));
    const bool ended = take < data.size() && data[take] == '\n';
    data.remove_prefix(take + (ended ? 1 : 0));
    offset += take + (ended ? 1 : 0);
    if (ended || half.bytes.size() >= kLongestLine) {
      Emit(chunk.rank(), chunk.stream(), half, !ended);
      half.bytes.clear();
    }
  }
}

void LogJson::Finish() {
  for (auto& [key, half] : halves_) {
    if (!half.bytes.empty()) Emit(key.first, key.second, half, true);
    half.bytes.clear();
  }
}

}  // namespace muster::cli
