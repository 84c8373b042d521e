#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string>
#include <string_view>

// The line with which `musterd bridge` says that gRPC follows on its stdout. Whatever a login
// shell's rc files print before it is skipped; the line carries the protocol version, so that two
// versions part with a clear message and not in the middle of HTTP/2. Pure.

namespace muster {

struct BridgeMarker {
  unsigned protocol = 0;
  std::string version;
};

// "\nMUSTER-BRIDGE protocol=1 version=0.1.0\n". It begins with a newline, so that noise without one
// does not matter to people who look at it.
std::string BridgeMarkerLine(const BridgeMarker& marker);

// Looks for the marker in a stream that comes in pieces.
class BridgeMarkerScanner {
 public:
  // Takes the next bytes of the stream; how many of them belong to noise and marker. When found()
  // is true afterwards, the rest of `bytes` is gRPC's. FailedPrecondition: a marker line that
  // cannot be read, or more noise than any rc file makes (256 KiB).
  absl::StatusOr<size_t> Feed(std::string_view bytes);

  bool found() const { return found_; }
  const BridgeMarker& marker() const { return marker_; }
  // The last part of what came before the marker, for messages.
  std::string NoiseTail() const;

 private:
  std::string seen_;  // bounded
  bool found_ = false;
  BridgeMarker marker_;
};

}  // namespace muster
