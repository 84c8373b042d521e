#pragma once

#include <string>

#include "muster/v1/worker.pb.h"
#include "worker/ranks/record.pb.h"

namespace muster::ranks {

// The rules for wishes, as pure functions (docs/protocol.md has them as a table).

// Why `wish` must be refused, or "" if it is to be accepted. `record` is null for an attempt this
// node does not know; `owner` is the controller id of the stream the wish came on.
std::string Refusal(const v1::Desired& wish, const worker::AttemptRecord* record,
                    const std::string& owner);

// Whether the rank has run and runs no more.
bool HasEnded(const v1::RankStatus& rank);

// Whether ids may become folder names: 1 to 64 of [A-Za-z0-9._-], not starting with a dot.
bool IsSafeName(const std::string& name);

// "controller/job/attempt": the value of MUSTER_ATTEMPT, and the attempt's name in messages.
std::string AttemptName(const v1::AttemptId& id);

}  // namespace muster::ranks
