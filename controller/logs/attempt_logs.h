#pragma once

#include <cstdint>
#include <memory>

#include "muster/v1/worker.pb.h"

namespace muster::logs {

class Growth;

// What readers ask of the log organ about attempts that may still grow. Any thread.
class AttemptLogs {
 public:
  virtual ~AttemptLogs() = default;
  // The live sizes of an attempt that is open in this process; null for one that is not (ended
  // before this controller started, or not prepared yet): its files are all there is.
  virtual std::shared_ptr<const Growth> Live(const v1::AttemptId& id) const = 0;
};

}  // namespace muster::logs
