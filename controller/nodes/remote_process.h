#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "common/unique_fd.h"

namespace muster::nodes {

// A command under way on a host, or the program that carries it there: `ssh HOST COMMAND`, a
// channel of an ssh library. Its stdin and stdout are the socket of StartedProcess. One thread.
class RemoteProcess {
 public:
  // Ends it and waits for that; nothing of it is left on this machine.
  virtual ~RemoteProcess() = default;

  // For messages, which go on with "exited with 255": "ssh".
  virtual std::string Name() const = 0;
  // Readable when there is news on stderr.
  virtual int error_fd() const = 0;
  // Reads what is on stderr now.
  virtual void ReadErrors() = 0;
  // From now on nobody reads stderr for a long time: what can't be kept is dropped, and never
  // blocks the command.
  virtual void DropErrors() = 0;
  // The last lines of stderr on one line, "" if none.
  virtual std::string ErrorTail() const = 0;
  // Its status, as of waitpid, once it has ended; waits for that at most so long.
  virtual std::optional<int> WaitEnd(std::chrono::milliseconds limit) = 0;
};

struct StartedProcess {
  std::unique_ptr<RemoteProcess> process;
  UniqueFd socket;  // our end of its stdin and stdout; a stream socket, non-blocking
};

}  // namespace muster::nodes
