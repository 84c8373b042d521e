#pragma once

#include "controller/engine/context.h"
#include "controller/engine/event.h"

// Staging: a tree on its way to hosts. Beside jobs: it takes no host from anybody, and nothing of
// it is stored, since each node's verified pieces are there when it is begun again.

namespace muster::engine {

void OnStageRequested(Context& c, const StageRequested& event);
void OnStageReported(Context& c, const StageReported& event);
// A piece that a node had asked for was read and is on its way.
void OnPieceSent(Context& c, const PieceSent& event);
// The client left, or the tree can't be read any more: ends the transfer on all nodes.
void OnStageBroken(Context& c, const StageBroken& event);
void OnStageTick(Context& c, uint64_t id);
void OnLinkUpInStaging(Context& c, const std::string& host);
void OnLinkLostInStaging(Context& c, const std::string& host, const absl::Status& why);
// Whether a transfer needs the link to the host.
bool StagingNeeds(const State& state, const std::string& host);

}  // namespace muster::engine
