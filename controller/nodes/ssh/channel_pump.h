#pragma once

#include <absl/status/status.h>
#include <libssh/callbacks.h>
#include <libssh/libssh.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/nodes/stop_signal.h"

namespace muster::nodes::ssh {

// Carries bytes between an open channel and a socket until one of them ends. Holds at most one
// chunk each way; libssh holds what the host may send by the channel's window, and that only grows
// as the socket takes bytes. One thread; borrows everything.
class ChannelPump {
 public:
  ChannelPump(ssh_session session, ssh_channel channel, int socket, int errors,
              const StopSignal& stop);
  ChannelPump(const ChannelPump&) = delete;
  ChannelPump& operator=(const ChannelPump&) = delete;
  ~ChannelPump();

  // OK: the channel was closed in order, the socket's other end is gone, or stopped. Unavailable:
  // the session broke.
  absl::Status Run();

  // How the command ended, as of waitpid; nothing when it was not said.
  std::optional<int> wait_status() const { return wait_status_; }

  // Writes to the errors' pipe what it can hold.
  void SayError(std::string_view text) const;

 private:
  // Bytes that one side has given and the other has not taken yet.
  struct Chunk {
    std::vector<char> bytes;
    size_t begin = 0;
    size_t end = 0;
    bool empty() const { return begin == end; }
  };

  // Each: true when something moved.
  bool ToSocket();
  bool ToErrors();
  bool FromSocket();
  void Wait(bool moved);
  bool Finished() const;
  bool MayWrite() const;

  static void OnExitStatus(ssh_session session, ssh_channel channel, int status, void* self);
  static void OnExitSignal(ssh_session session, ssh_channel channel, const char* signal, int core,
                           const char* message, const char* language, void* self);

  ssh_session const session_;
  ssh_channel const channel_;
  const int socket_;
  const int errors_;
  const StopSignal& stop_;
  ssh_event event_;
  ssh_channel_callbacks_struct callbacks_{};
  Chunk to_socket_;
  Chunk from_socket_;
  bool channel_eof_ = false;  // the host will send no more
  bool socket_eof_ = false;   // the socket's other end will send no more
  bool socket_gone_ = false;  // nor take anything
  bool broken_ = false;       // the session
  std::optional<int> wait_status_;
};

}  // namespace muster::nodes::ssh
