#pragma once

#include <absl/status/statusor.h>
#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "common/unique_fd.h"

namespace muster::stage {

inline constexpr size_t kTransferKeyBytes = 32;

// A TLS 1.3 connection between two workers of one transfer. Both prove that they know the
// transfer's key (a pre-shared key; there are no certificates), and nobody else can read or change
// what goes over it. Blocking; one thread, but Shutdown.
class TlsStream {
 public:
  enum class Side { kClient, kServer };
  // Takes a connected socket and shakes hands within the time limit.
  static absl::StatusOr<std::unique_ptr<TlsStream>> Start(UniqueFd socket, Side side,
                                                          const std::string& key,
                                                          std::chrono::milliseconds limit);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // From now on: how long one read or write may wait for the other side.
  void SetPatience(std::chrono::milliseconds limit);
  absl::Status Write(std::string_view bytes);
  // Exactly so many bytes. Unavailable: the other side has gone, or is silent for too long.
  absl::StatusOr<std::string> Read(size_t size);
  // Any thread: running and later calls fail.
  void Shutdown();

 private:
  struct Context;
  TlsStream();
  absl::Status Handshake(bool server, std::chrono::milliseconds limit);
  // The call was ended by a signal, as after SIGSTOP and SIGCONT, and is to be made again.
  bool Interrupted(int result) const;
  absl::Status Error(const char* what, int result) const;

  UniqueFd socket_;
  std::unique_ptr<Context> context_;
};

}  // namespace muster::stage
