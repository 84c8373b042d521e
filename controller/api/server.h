#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "controller/api/backend.h"
#include "controller/api/state_dir.h"
#include "controller/logs/attempt_logs.h"

namespace muster::api {

// The control service of muster.v1 on `<state dir>/controller.sock`, for processes of this user
// only. Any thread may destroy it; that ends all calls (viewers see UNAVAILABLE) and removes the
// socket.
class Server {
 public:
  struct Options {
    int max_log_viewers =
        64;  // each has a thread of its own; the next one is refused with RESOURCE_EXHAUSTED
    size_t watch_queue =
        1024;  // events held for one slow watcher before its subscription is renewed from the store
  };

  // Listens; calls are answered when it returns. `lock`, `backend` and `logs` outlive the server.
  // The backend may call back (Watch) until the server is destroyed.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Options& options,
                                                       const StateLock& lock, Backend& backend,
                                                       logs::AttemptLogs& logs);
  virtual ~Server() = default;
};

}  // namespace muster::api
