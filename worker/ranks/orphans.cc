#include "worker/ranks/orphans.h"

#include <unistd.h>

#include <algorithm>

#include "common/utf8.h"
#include "worker/facts/user_name.h"
#include "worker/ranks/reconcile.h"

namespace muster::ranks {
namespace {

// The value of a variable in a NUL-separated environment; nothing if it is not there.
std::optional<std::string> Variable(const std::string& environment, const std::string& name) {
  const std::string mark = name + "=";
  for (size_t at = 0; at < environment.size();) {
    const size_t end = std::min(environment.find('\0', at), environment.size());
    if (environment.compare(at, mark.size(), mark) == 0)
      return environment.substr(at + mark.size(), end - at - mark.size());
    at = end + 1;
  }
  return std::nullopt;
}

bool IsNumber(const std::string& text) {
  return !text.empty() && text.size() <= 9 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

// ".../attempt_0/3/error.json" -> ".../attempt_0"; "" for anything else.
std::string AttemptFolderOf(const std::string& error_file, const Mark& mark) {
  const size_t file = error_file.rfind('/');
  const size_t rank = file == std::string::npos ? file : error_file.rfind('/', file - 1);
  if (rank == std::string::npos || error_file[0] != '/') return "";
  const std::string folder = error_file.substr(0, rank);
  const std::string wanted =
      "/jobs/" + mark.controller + "/" + mark.job + "/attempt_" + mark.attempt;
  return folder.ends_with(wanted) ? folder : "";
}

bool Has(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

std::optional<Mark> ParseMark(std::string_view value) {
  const size_t at = value.rfind('@');
  const size_t first = value.find('/');
  const size_t second = first == std::string_view::npos ? first : value.find('/', first + 1);
  if (at == std::string_view::npos || second == std::string_view::npos || second > at)
    return std::nullopt;
  Mark mark;
  mark.controller = value.substr(0, first);
  mark.job = value.substr(first + 1, second - first - 1);
  mark.attempt = value.substr(second + 1, at - second - 1);
  mark.tag = value.substr(at + 1);
  if (!IsSafeName(mark.controller) || !IsSafeName(mark.job) || !IsNumber(mark.attempt) ||
      !IsSafeName(mark.tag)) {
    return std::nullopt;
  }
  return mark;
}

std::vector<MarkedProcess> FindMarked(const facts::ProcReader& proc) {
  std::vector<MarkedProcess> found;
  for (const pid_t pid : proc.Pids()) {
    const auto stat = proc.Stat(pid);
    if (!stat || stat->IsZombie() || pid == getpid()) continue;
    const auto environment = proc.Environ(pid);
    if (!environment) continue;
    const auto value = Variable(*environment, "MUSTER_ATTEMPT");
    const auto mark = value ? ParseMark(*value) : std::nullopt;
    if (!mark) continue;
    MarkedProcess& marked = found.emplace_back();
    marked.mark = *mark;
    marked.process.pid = pid;
    marked.process.start_ticks = stat->start_ticks;
    marked.process.uid = proc.Uid(pid).value_or(getuid());
    marked.process.user = ToValidUtf8(facts::UserName(marked.process.uid));
    marked.process.state = stat->state;
    marked.process.command = ToValidUtf8(proc.Command(pid));
    marked.process.wait_channel = ToValidUtf8(proc.WaitChannel(pid));
    const std::string rank = Variable(*environment, "RANK").value_or("");
    if (IsNumber(rank)) marked.process.rank = static_cast<uint32_t>(std::stoul(rank));
    marked.attempt_folder =
        AttemptFolderOf(Variable(*environment, "TORCHELASTIC_ERROR_FILE").value_or(""), *mark);
  }
  return found;
}

bool IsDead(const MarkedProcess& process, const AttemptKnowledge& known, bool folder_exists) {
  const Mark& mark = process.mark;
  const bool askers = mark.controller == known.controller;
  if (askers && Has(known.live_jobs, mark.job)) return false;
  if (mark.tag != known.tag) return !process.attempt_folder.empty() && !folder_exists;
  if (!Has(known.running, mark.Name())) return true;
  return askers || known.any_controller;
}

}  // namespace muster::ranks
