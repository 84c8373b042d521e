#include "controller/cli/deep_check.h"

#include <fcntl.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "common/status.h"
#include "common/unique_fd.h"
#include "controller/cli/check_view.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/follow.h"
#include "controller/logs/layout.h"

namespace muster::cli {

v1::JobSpec DeepSpec(const v1::JobSpec& spec, bool json) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  v1::JobSpec deep = spec;
  deep.set_name("commtest");
  deep.clear_command();
  deep.add_command((self.parent_path() / "muster-commtest").string());
  if (json) deep.add_command("--json");
  // The same ranks, without a training program's sizes and flags.
  deep.clear_flags();
  deep.clear_parallel();
  deep.clear_recipe();
  return deep;
}

absl::StatusOr<DeepResult> RunDeepCheck(Client& client, SignalWait& signals,
                                        const v1::JobSpec& deep_spec) {
  v1::SubmitRequest request;
  *request.mutable_spec() = deep_spec;
  MUSTER_ASSIGN_OR_RETURN(const auto submitted, (client.Call<v1::SubmitRequest, v1::SubmitResponse>(
                                                    &Client::Stub::Submit, request)));
  // Its phases and lines are not shown: rank 0's report at the end is all that counts.
  const UniqueFd nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!nowhere) return PosixError("open /dev/null");
  FollowOptions options;
  options.fd = nowhere.get();
  options.style = Style::For(nowhere.get());
  MUSTER_ASSIGN_OR_RETURN(Followed followed,
                          Follow(client, signals, submitted.job_id(), 1, options));
  if (followed.end == Followed::End::kDetached) {
    return absl::CancelledError("left while job " + submitted.job_id() + " (commtest) goes on");
  }
  DeepResult result;
  result.job = std::move(followed.job);
  std::ifstream file(logs::RankDir(result.job.output_dir(), 0, 0) + "/" +
                     logs::LogName(v1::STREAM_STDOUT));
  std::ostringstream content;
  content << file.rdbuf();
  result.report = content.str();
  return result;
}

std::string DeepCheckJson(const v1::CheckResponse& checked, const DeepResult& deep) {
  using Json = nlohmann::ordered_json;
  Json out = Json::parse(CheckJson(checked));
  out["cause"] = CauseName(deep.job.outcome().cause());
  out["code"] = ExitCodeFor(deep.job);
  const Json report = Json::parse(deep.report, nullptr, /*allow_exceptions=*/false);
  out["deep"] = report.is_discarded() ? Json() : report;
  return out.dump();
}

}  // namespace muster::cli
