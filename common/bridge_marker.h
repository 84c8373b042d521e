#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

// What the other side of a remote command says on lines of its own, among whatever a login shell's
// rc files print. Pure.

namespace muster {

// `musterd bridge`: gRPC follows. The line carries the protocol version, so that two versions part
// with a clear message and not in the middle of HTTP/2.
struct BridgeMarker {
  unsigned protocol = 0;
  std::string version;
};

// The script that looks for the worker has not found it: it waits for one of its programs.
struct ProgramRequest {
  std::string file;    // "musterd" or "muster-shim"
  std::string arch;    // the host's, as uname -m says it
  bool gzip = false;   // it can unpack
  std::string folder;  // where the program will lie
};

// "\nMUSTER-BRIDGE protocol=1 version=0.1.0\n". It begins with a newline, so that noise without one
// does not matter to people who look at it.
std::string BridgeMarkerLine(const BridgeMarker& marker);

// Looks for these lines in a stream that comes in pieces.
class BridgeMarkerScanner {
 public:
  // Takes the next bytes of the stream, up to the end of the first line for us; how many of them
  // that is. FailedPrecondition: such a line that cannot be read, or more noise than any rc file
  // makes (256 KiB).
  absl::StatusOr<size_t> Feed(std::string_view bytes);

  // The last line was the marker; the rest of the stream is gRPC's.
  bool found() const { return found_; }
  const BridgeMarker& marker() const { return marker_; }
  // The last line asked for a program; once for each such line.
  std::optional<ProgramRequest> TakeRequest() { return std::exchange(request_, std::nullopt); }
  // The last part of what came before the last such line, for messages.
  std::string NoiseTail() const;

 private:
  absl::Status Parse(std::string_view line);

  std::string seen_;  // bounded
  bool found_ = false;
  BridgeMarker marker_;
  std::optional<ProgramRequest> request_;
};

}  // namespace muster
