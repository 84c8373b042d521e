#include "controller/cli/stage_job.h"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <system_error>

#include "common/utf8.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kKeep = 4;

bool IsBelow(const fs::path& path, const fs::path& folder) {
  const std::string text = path.string();
  return text == folder.string() || text.starts_with(folder.string() + "/");
}

// Typed outside the tree, relative words that lead into it mean files of it: the ranks start in
// the tree, where those words would lead nowhere.
void MakeWordsAbsolute(const fs::path& source, v1::JobSpec& spec) {
  for (std::string& word : *spec.mutable_command()) {
    std::error_code error;
    if (word.empty() || word[0] == '/' || fs::exists(source / word, error)) continue;
    const fs::path file = fs::canonical(word, error);
    if (!error && IsBelow(file, source)) word = file.string();
  }
}

// The folder of this program, where recipes find the trainer's.
fs::path BinFolder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

}  // namespace

absl::Status UseStaged(const std::string& folder, v1::JobSpec& spec) {
  std::error_code error;
  const fs::path source = fs::canonical(folder, error);
  if (error) return absl::InvalidArgumentError("--stage " + folder + ": " + error.message());
  if (!fs::is_directory(source, error))
    return absl::InvalidArgumentError("--stage " + folder + ": not a folder");
  if (!IsValidUtf8(source.string()))
    return absl::InvalidArgumentError("--stage " + folder + ": its full path is not valid UTF-8");
  spec.mutable_staged()->set_source(source.string());
  const fs::path program = spec.command_size() > 0 ? spec.command(0) : "";
  const fs::path staged = source / "bin" / program.filename();
  if (program.parent_path() == BinFolder() && access(staged.c_str(), X_OK) == 0) {
    // The tree is the trainer; its data lies where it would without.
    spec.set_command(0, staged.string());
    return absl::OkStatus();
  }
  const fs::path here = fs::current_path(error);
  if (spec.working_dir() == here && !IsBelow(here, source)) {
    spec.set_working_dir(source.string());
    MakeWordsAbsolute(source, spec);
  }
  return absl::OkStatus();
}

v1::StageRequest StageRequestFor(const v1::JobSpec& spec, const v1::Plan* plan) {
  v1::StageRequest request;
  request.add_paths(spec.staged().source());
  std::set<std::string> used;
  if (plan != nullptr) {
    for (const v1::NodePlan& node : plan->nodes()) used.insert(node.host().host());
  }
  for (const v1::Host& host : spec.inventory().hosts()) {
    if (plan == nullptr || host.spare() || used.contains(host.host()))
      *request.mutable_inventory()->add_hosts() = host;
  }
  request.mutable_inventory()->set_source(spec.inventory().source());
  request.set_default_transport(spec.default_transport());
  *request.mutable_port_range() = spec.port_range();
  request.set_keep(kKeep);
  return request;
}

absl::Status StagedEverywhere(const v1::StageResponse& end) {
  std::string failed;
  for (const v1::StageHost& host : end.hosts()) {
    if (host.status().state() == v1::STAGE_STATE_DONE) continue;
    absl::StrAppend(&failed, failed.empty() ? "" : "\n", host.host(),
                    ": not staged: ", host.status().error());
  }
  return failed.empty() ? absl::OkStatus() : absl::UnavailableError(failed);
}

}  // namespace muster::cli
