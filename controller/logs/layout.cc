#include "controller/logs/layout.h"

#include <algorithm>

namespace muster::logs {
namespace {

// A host or job name as one file name.
std::string FileName(std::string text) {
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

}  // namespace

size_t StreamIndex(v1::Stream stream) {
  switch (stream) {
    case v1::STREAM_STDOUT:
      return 0;
    case v1::STREAM_STDERR:
      return 1;
    case v1::STREAM_EVENTS:
      return 2;
    default:
      return kNumStreams;
  }
}

const char* StreamName(v1::Stream stream) {
  static constexpr const char* kNames[] = {"stdout", "stderr", "events", "unknown"};
  return kNames[StreamIndex(stream)];
}

std::string AttemptDir(const std::string& output_dir, uint32_t attempt) {
  return output_dir + "/ranks/attempt_" + std::to_string(attempt);
}

std::string RankDir(const std::string& output_dir, uint32_t attempt, uint32_t rank) {
  return AttemptDir(output_dir, attempt) + "/" + std::to_string(rank);
}

std::string LogName(v1::Stream stream) {
  return std::string(StreamName(stream)) + (stream == v1::STREAM_EVENTS ? ".jsonl" : ".log");
}

std::string TimesName(v1::Stream stream) {
  return std::string(StreamName(stream)) + ".times";
}

std::string GapsName(v1::Stream stream) {
  return std::string(StreamName(stream)) + ".gaps";
}

std::string MergedPath(const std::string& output_dir, const v1::Plan& plan, size_t node,
                       uint32_t attempt) {
  const std::string& host = plan.nodes(static_cast<int>(node)).host().host();
  return output_dir + "/" + FileName(plan.name()) + ".log." + std::to_string(node) + "." +
         FileName(host) + (attempt == 0 ? "" : ".attempt_" + std::to_string(attempt));
}

std::string TorchrunDir(const std::string& output_dir, const std::string& run_id,
                        const std::string& host, uint32_t attempt) {
  return output_dir + "/" + FileName(run_id + "_" + host) + "/attempt_" + std::to_string(attempt);
}

int RankWidth(uint32_t world) {
  return static_cast<int>(std::to_string(world == 0 ? 0 : world - 1).size());
}

}  // namespace muster::logs
