#include "controller/cli/exit_code.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace muster::cli {
namespace {

// JOB_STATE_RUNNING -> "running": enum names are the words, so that a new value needs no table
// here.
std::string Word(std::string_view enum_name, std::string_view prefix) {
  if (enum_name.substr(0, prefix.size()) == prefix) enum_name.remove_prefix(prefix.size());
  std::string out(enum_name);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

int ExitCodeFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kOutOfRange:
      return kExitUsage;
    default:
      return kExitInternal;
  }
}

int ExitCodeFor(const v1::Job& job) {
  if (!job.has_outcome() || job.outcome().cause() == v1::CAUSE_UNSPECIFIED) {
    return job.state() == v1::JOB_STATE_SUCCEEDED ? kExitOk : kExitInternal;
  }
  return job.outcome().code();
}

std::string StateName(v1::JobState state) {
  return Word(v1::JobState_Name(state), "JOB_STATE_");
}
std::string CauseName(v1::Cause cause) {
  return Word(v1::Cause_Name(cause), "CAUSE_");
}
std::string LinkStateName(v1::LinkState state) {
  return Word(v1::LinkState_Name(state), "LINK_STATE_");
}
std::string RankStateName(v1::RankState state) {
  return Word(v1::RankState_Name(state), "RANK_STATE_");
}
std::string StreamName(v1::Stream stream) {
  return Word(v1::Stream_Name(stream), "STREAM_");
}

std::string ErrorText(const absl::Status& status) {
  return status.message().empty() ? Word(absl::StatusCodeToString(status.code()), "")
                                  : std::string(status.message());
}

}  // namespace muster::cli
