#pragma once

#include <google/protobuf/repeated_field.h>

#include <string>
#include <vector>

#include "muster/v1/worker.pb.h"

namespace muster::ranks {

using Devices = google::protobuf::RepeatedPtrField<v1::Device>;

// Devices that hold more memory than before the attempt which no living process accounts for:
// "device 3: 39.2 GiB in use by no process that can be seen, 0.4 GiB before the attempt". Other
// jobs may have come to the node meanwhile: what their processes hold does not count. Pure.
std::vector<std::string> HeldDevices(const Devices& before, const Devices& now);

}  // namespace muster::ranks
