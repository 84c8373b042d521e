#include "common/bridge_marker.h"

#include <charconv>

#include "common/status.h"

namespace muster {
namespace {

constexpr std::string_view kMarker = "MUSTER-BRIDGE protocol=";
constexpr std::string_view kVersion = " version=";
constexpr std::string_view kRequest = "MUSTER-SEND file=";
constexpr size_t kMaxNoise = 256UL * 1024;
constexpr size_t kMaxLine = 5000;  // it may have a path
constexpr size_t kTailShown = 300;

absl::Status Unreadable(std::string_view line) {
  return absl::FailedPreconditionError("'" + std::string(line) + "' is no line of a worker's");
}

absl::StatusOr<BridgeMarker> ParseMarker(std::string_view line) {
  BridgeMarker marker;
  const std::string_view rest = line.substr(kMarker.size());
  const auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), marker.protocol);
  const std::string_view tail = rest.substr(static_cast<size_t>(end - rest.data()));
  if (error != std::errc() || !tail.starts_with(kVersion)) return Unreadable(line);
  marker.version = std::string(tail.substr(kVersion.size()));
  return marker;
}

// "MUSTER-SEND file=musterd arch=x86_64 gzip=1 to=/var/tmp/muster-0/bin"
absl::StatusOr<ProgramRequest> ParseRequest(std::string_view line) {
  ProgramRequest request;
  std::string_view rest = line.substr(kRequest.size());
  // Up to the next name, which is taken too.
  const auto value_before = [&rest](std::string_view name) -> std::optional<std::string> {
    const size_t end = rest.find(name);
    if (end == std::string_view::npos) return std::nullopt;
    std::string value(rest.substr(0, end));
    rest.remove_prefix(end + name.size());
    return value;
  };
  const auto file = value_before(" arch=");
  const auto arch = value_before(" gzip=");
  const auto gzip = value_before(" to=");
  if (!file || !arch || !gzip) return Unreadable(line);
  return ProgramRequest{*file, *arch, *gzip == "1", std::string(rest)};
}

}  // namespace

std::string BridgeMarkerLine(const BridgeMarker& marker) {
  return "\n" + std::string(kMarker) + std::to_string(marker.protocol) + std::string(kVersion) +
         marker.version + "\n";
}

absl::Status BridgeMarkerScanner::Parse(std::string_view line) {
  // Something on the way turns newlines into CR LF: it is a terminal, and would change bytes.
  if (line.ends_with('\r')) {
    return absl::FailedPreconditionError(
        "a terminal lies on the way and changes bytes: leave out -t or --tty");
  }
  if (line.starts_with(kRequest)) {
    MUSTER_ASSIGN_OR_RETURN(request_, ParseRequest(line));
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(marker_, ParseMarker(line));
  found_ = true;
  return absl::OkStatus();
}

absl::StatusOr<size_t> BridgeMarkerScanner::Feed(std::string_view bytes) {
  const size_t before = seen_.size();
  seen_.append(bytes);
  const size_t begin = std::min(seen_.find(kMarker), seen_.find(kRequest));
  const size_t end = begin == std::string::npos ? begin : seen_.find('\n', begin);
  if (end != std::string::npos) {
    MUSTER_RETURN_IF_ERROR(Parse(std::string_view(seen_).substr(begin, end - begin)));
    seen_.resize(begin);
    return end + 1 - before;
  }
  if (begin != std::string::npos && seen_.size() - begin > kMaxLine) {
    return absl::FailedPreconditionError("a line of a worker's without an end");
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
