#pragma once

#include <string>
#include <string_view>

#include "muster/v1/job.pb.h"
#include "muster/v1/worker.pb.h"

// A job that runs from a staged tree (`submit --stage`): paths below the submitter's folder mean
// the same paths below the node's staged one, and {stage} stands for that folder. Pure.

namespace muster::stage {

// The staged tree's folder on a node.
std::string FolderOn(const v1::StagedTree& staged, const v1::WorkerHello& hello);

// One word: a path, or a value after the first '=' of a flag, that is the source or lies below it.
std::string MapWord(std::string_view word, const v1::StagedTree& staged, const std::string& folder);

// What a rank gets: words, values, working folder, and MUSTER_STAGE.
void MapRank(const v1::StagedTree& staged, const std::string& folder, v1::RankSpec& spec);
// What preflight asks of a node.
void MapProbe(const v1::StagedTree& staged, const std::string& folder, v1::Probe& probe);
// A node's answer in the submitter's terms, so that answers can be compared.
void UnmapAnswer(const v1::StagedTree& staged, const std::string& folder, v1::ProbeResult& result);

}  // namespace muster::stage
