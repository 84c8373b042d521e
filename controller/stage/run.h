#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "muster/v1/control.pb.h"
#include "muster/v1/stage.pb.h"

// One run of `muster stage` as the engine knows it: plain values.

namespace muster::stage {

inline constexpr int kNoSource = -1;
inline constexpr int kController = -2;

struct StageNode {
  v1::Host host;
  bool up = false;
  int64_t down_since_ns = 0;  // while not up
  bool ready = false;         // it has answered StageBegin on this connection
  uint32_t port = 0;          // of its listener; 0: it has none
  v1::StageStatus status;
  int source = kNoSource;       // index of a node, or kController
  std::set<int> banned;         // nodes from which it could not fetch
  bool slow = false;            // feeds nobody until it has all
  int64_t moved_ns = 0;         // when its source was chosen
  int64_t progress_ns = 0;      // when it last had a piece more
  int64_t heard_ns = 0;         // when it last said anything on this connection
  std::deque<uint32_t> wanted;  // pieces of the controller that wait for their turn
  uint32_t under_way = 0;       // pieces that are being read for it

  bool done() const { return status.state() == v1::STAGE_STATE_DONE; }
  bool failed() const { return status.state() == v1::STAGE_STATE_FAILED; }
  bool ended() const { return done() || failed(); }
};

struct StageRun {
  uint64_t id = 0;
  uint64_t transfer = 0;  // random
  std::string key;        // likewise
  v1::StageRequest request;
  std::string content_id;  // empty: only prune
  uint64_t manifest_bytes = 0;
  uint32_t pieces = 0;  // of manifest and content
  uint32_t files = 0;
  uint64_t bytes = 0;
  uint32_t ignored = 0;
  int64_t started_ns = 0;
  uint64_t bytes_sent = 0;
  std::vector<StageNode> nodes;
};

// What a node's listener is called on the data network.
inline const std::string& DataAddress(const v1::Host& host) {
  return host.has_addr() ? host.addr() : host.host();
}

}  // namespace muster::stage
