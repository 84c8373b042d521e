#pragma once

#include <cstdint>
#include <string>

#include "muster/v1/job.pb.h"
#include "muster/v1/worker.pb.h"

// Where an attempt's files lie below its output folder; the tree is described in docs/logs.md.
// Pure.

namespace muster::logs {

inline constexpr v1::Stream kStreams[] = {v1::STREAM_STDOUT, v1::STREAM_STDERR, v1::STREAM_EVENTS};
inline constexpr size_t kNumStreams = 3;

// 0, 1, 2 for stdout, stderr, events; kNumStreams for anything else.
size_t StreamIndex(v1::Stream stream);
// "stdout", "stderr", "events".
const char* StreamName(v1::Stream stream);

// `<output>/ranks/attempt_<k>`.
std::string AttemptDir(const std::string& output_dir, uint32_t attempt);
// `<output>/ranks/attempt_<k>/<rank>`.
std::string RankDir(const std::string& output_dir, uint32_t attempt, uint32_t rank);
// "stdout.log", "stderr.log", "events.jsonl".
std::string LogName(v1::Stream stream);
// "stdout.times", "stderr.times", "events.times".
std::string TimesName(v1::Stream stream);
// "stdout.gaps", "stderr.gaps", "events.gaps".
std::string GapsName(v1::Stream stream);
// `<output>/<name>.log.<n>.<host>`, with `.attempt_<k>` after the first attempt.
std::string MergedPath(const std::string& output_dir, const v1::Plan& plan, size_t node,
                       uint32_t attempt);
// `<output>/<run id>_<host>/attempt_<k>/<local rank>`: torchrun's shape.
std::string TorchrunDir(const std::string& output_dir, const std::string& run_id,
                        const std::string& host, uint32_t attempt);

// Digits of the largest rank.
int RankWidth(uint32_t world);

}  // namespace muster::logs
