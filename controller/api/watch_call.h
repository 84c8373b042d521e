#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>

#include "controller/api/backend.h"
#include "muster/v1/control.pb.h"

namespace muster::api {

// A Watch call: takes events from the engine's thread without ever blocking it, and holds at most
// `max_queue` of them for a slow watcher. One that falls behind is cut off from the live events
// and, when it has read what was held, subscribed again after the last of them, so it misses
// nothing. `backend` outlives the call.
grpc::ServerWriteReactor<v1::WatchResponse>* StartWatchCall(const v1::WatchRequest& request,
                                                            Backend& backend, size_t max_queue);

}  // namespace muster::api
