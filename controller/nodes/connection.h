#pragma once

#include <memory>
#include <string>

#include "common/unique_fd.h"

namespace muster::nodes {

// What carries a connection and lives as long as it: a program such as ssh. Link's thread only.
class Carrier {
 public:
  // Ends the carrier; nothing of it is left afterwards.
  virtual ~Carrier() = default;
  // After the stream broke: what the carrier has to say about it ("ssh exited with 255: Connection
  // reset by peer"), or "".
  virtual std::string LastWords() = 0;
};

// A stream on which a worker speaks gRPC; non-blocking.
struct Connection {
  UniqueFd fd;
  std::unique_ptr<Carrier> carrier;  // null: the descriptor is all there is
};

}  // namespace muster::nodes
