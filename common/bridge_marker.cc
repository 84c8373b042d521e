#include "common/bridge_marker.h"

#include <charconv>

namespace muster {
namespace {

constexpr std::string_view kWord = "MUSTER-BRIDGE protocol=";
constexpr std::string_view kVersion = " version=";
constexpr size_t kMaxNoise = 256UL * 1024;
constexpr size_t kMaxLine = 200;
constexpr size_t kTailShown = 300;

absl::StatusOr<BridgeMarker> Parse(std::string_view line) {
  BridgeMarker marker;
  const std::string_view rest = line.substr(kWord.size());
  const auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), marker.protocol);
  const std::string_view tail = rest.substr(static_cast<size_t>(end - rest.data()));
  if (error != std::errc() || tail.substr(0, kVersion.size()) != kVersion) {
    return absl::FailedPreconditionError("'" + std::string(line) +
                                         "' is no line of musterd bridge");
  }
  marker.version = std::string(tail.substr(kVersion.size()));
  // Something on the way turns newlines into CR LF: it is a terminal, and would change bytes.
  if (!marker.version.empty() && marker.version.back() == '\r') {
    return absl::FailedPreconditionError(
        "a terminal lies on the way and changes bytes: leave out -t or --tty");
  }
  return marker;
}

}  // namespace

std::string BridgeMarkerLine(const BridgeMarker& marker) {
  return "\n" + std::string(kWord) + std::to_string(marker.protocol) + std::string(kVersion) +
         marker.version + "\n";
}

absl::StatusOr<size_t> BridgeMarkerScanner::Feed(std::string_view bytes) {
  const size_t before = seen_.size();
  seen_.append(bytes);
  const size_t begin = seen_.find(kWord);
  const size_t end = begin == std::string::npos ? begin : seen_.find('\n', begin);
  if (end != std::string::npos) {
    auto marker = Parse(std::string_view(seen_).substr(begin, end - begin));
    if (!marker.ok()) return marker.status();
    marker_ = *std::move(marker);
    found_ = true;
    seen_.resize(begin);
    return end + 1 - before;
  }
  if (begin != std::string::npos && seen_.size() - begin > kMaxLine) {
    return absl::FailedPreconditionError("a line of musterd bridge without an end");
  }
  if (seen_.size() > kMaxNoise) {
    return absl::FailedPreconditionError("more than " + std::to_string(kMaxNoise / 1024) +
                                         " KiB came, and no line of musterd bridge among them");
  }
  return bytes.size();
}

std::string BridgeMarkerScanner::NoiseTail() const {
  const size_t begin = seen_.size() > kTailShown ? seen_.size() - kTailShown : 0;
  return seen_.substr(begin);
}

}  // namespace muster
