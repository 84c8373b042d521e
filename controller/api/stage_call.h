#pragma once

#include <grpcpp/grpcpp.h>

#include "controller/api/backend.h"
#include "muster/v1/control.pb.h"

namespace muster::api {

// A Stage call: of the news that come while the client reads, it gets the newest. The client's end
// is the transfer's end. `backend` outlives the call.
grpc::ServerWriteReactor<v1::StageResponse>* StartStageCall(const v1::StageRequest& request,
                                                            Backend& backend);

}  // namespace muster::api
