#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/v1/job.pb.h"

// The communication groups of a layout, as Megatron makes them from its order tp-cp-ep-dp-pp (dense
// models: ep is 1). Pure.

namespace muster::plan {

enum class GroupKind {
  kTp,
  kCp,
  kDp,    // without CP
  kDpCp,  // gradients and optimizer
  kTpCp,
  kTpDp,
  kTpDpCp,  // FP8 amax
  kPp,
  kTpPp,       // one copy of the model, without CP
  kEmbedding,  // first and last stage: tied embeddings
  kPositionEmbedding,
};

struct GroupInfo {
  GroupKind kind;
  std::string_view name;  // "dp-cp"
  std::string_view use;   // "gradients, optimizer"; "" = nothing by itself
};
// All kinds, in the order in which they are shown.
const std::vector<GroupInfo>& GroupKinds();

// Groups of one kind, each with its global ranks in order; the groups ordered by their first rank.
std::vector<std::vector<uint32_t>> Groups(const v1::Plan& plan, GroupKind kind);

// How a kind lies over the hosts.
struct GroupSpread {
  GroupKind kind;
  uint32_t count = 0;             // groups
  uint32_t size = 0;              // ranks of the largest
  uint32_t crossing = 0;          // groups with ranks on more than one host
  std::vector<uint32_t> example;  // the first that crosses, else the first
};
GroupSpread Spread(const v1::Plan& plan, GroupKind kind);

}  // namespace muster::plan
