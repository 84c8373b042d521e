#include "controller/plan/script.h"

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "common/status.h"
#include "controller/plan/planner.h"
#include "controller/plan/render.h"

namespace muster::plan {
namespace {

constexpr std::string_view kHead = R"(#!/usr/bin/env bash
# Job {name}: {world} ranks on {nodes} hosts. What `muster submit` would start, as plain bash.
#
#   bash SCRIPT            over ssh (keys or an agent; no password is asked for)
#   LOCAL=1 bash SCRIPT    all ranks on this machine, to see that it runs
#
# Differences from muster: MASTER_PORT is fixed, and fails if it is taken; no host is checked first; a rank that
# leaves its process group outlives the job; a lost ssh connection leaves ranks behind; logs are one stream of lines
# with the rank before them, kept nowhere; nothing is restarted.
set -uo pipefail
{secrets}
# A bash on a host, which reads its commands from stdin.
on() {{
  if [ -n "${{LOCAL:-}}" ]; then exec bash -s; else exec ssh -o BatchMode=yes -o ConnectTimeout=15 "$@" bash -s; fi
}}
pids=()
trap 'trap - INT TERM; kill "${{pids[@]}}" 2>/dev/null; wait; exit 130' INT TERM
)";

// What each host's bash does with its ranks: start all, end all when one fails, answer with the
// first failure's status.
constexpr std::string_view kNodeHead = R"(
# {host}: ranks {first}-{last}
{{
{export_secrets}cat <<'{marker}'
set -uo pipefail
cd -- {folder} || exit 1
pids=()
start() {{  # RANK NAME=VALUE... -- ARGV...
  local rank=$1
  shift
  local variables=()
  while [ "$1" != -- ]; do
    variables+=("$1")
    shift
  done
  shift
  # A process group of its own, so that its children end with it.
  set -m
  env "${{variables[@]}}" "$@" </dev/null > >(sed -u "s/^/[$rank] /") 2>&1 &
  set +m
  pids+=($!)
}}
finish() {{
  for pid in "${{pids[@]}}"; do kill -CONT -- "-$pid" 2>/dev/null; kill -TERM -- "-$pid" 2>/dev/null; done
}}
interrupted=0
trap 'interrupted=1; finish' INT TERM HUP
)";

constexpr std::string_view kNodeTail = R"(status=0
left=${#pids[@]}
while [ "$left" -gt 0 ]; do
  interrupted=0
  wait -n
  code=$?
  if [ "$interrupted" -ne 0 ]; then continue; fi  # a signal, not the end of a rank
  left=$((left - 1))
  if [ "$code" -ne 0 ] && [ "$status" -eq 0 ]; then status=$code; finish; fi
done
exit "$status"
)";

constexpr std::string_view kTail = R"(
status=0
for ((i = 0; i < ${#pids[@]}; ++i)); do
  wait -n
  code=$?
  if [ "$code" -ne 0 ] && [ "$status" -eq 0 ]; then
    status=$code
    echo "a host ended with status $code: ending the others" >&2
    kill "${pids[@]}" 2>/dev/null
  fi
done
exit "$status"
)";

std::string SshWords(const v1::Host& host) {
  std::string out;
  if (host.has_port()) out += fmt::format("-p {} ", host.port());
  if (host.has_user()) out += fmt::format("-l {} ", ShellQuoted(host.user()));
  return out + "-- " + ShellQuoted(host.host());
}

bool IsShellName(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
}

std::set<std::string> SecretNames(const v1::JobSpec& spec) {
  std::set<std::string> out;
  for (const v1::EnvVar& secret : spec.secrets()) out.insert(secret.name());
  return out;
}

// NAME=VALUE words of a rank, without those that all ranks of its host share.
using Variables = std::map<std::string, std::string>;

Variables VariablesOf(const v1::RankSpec& rank, const std::set<std::string>& secrets) {
  Variables out;
  for (const v1::EnvVar& variable : rank.env()) {
    if (!secrets.contains(variable.name())) out[variable.name()] = variable.value();
  }
  return out;
}

// The rank's own variables, and its argv.
std::string StartLine(const v1::RankSpec& rank, const Variables& shared,
                      const std::set<std::string>& secrets) {
  std::string out = fmt::format("start {}", rank.rank());
  for (const auto& [name, value] : VariablesOf(rank, secrets)) {
    if (!shared.contains(name)) out += " " + ShellQuoted(fmt::format("{}={}", name, value));
  }
  out += " --";
  for (const std::string& word : rank.argv()) out += " " + ShellQuoted(word);
  return out + "\n";
}

absl::StatusOr<std::string> NodeText(const v1::JobSpec& spec, const v1::Plan& plan,
                                     const v1::NodePlan& node, const Launch& launch) {
  const std::set<std::string> secrets = SecretNames(spec);
  std::vector<v1::RankSpec> ranks;
  for (uint32_t i = 0; i < node.num_ranks(); ++i) {
    MUSTER_ASSIGN_OR_RETURN(v1::RankSpec rank,
                            MakeRankSpec(spec, plan, node.first_rank() + i, launch));
    ranks.push_back(std::move(rank));
  }
  Variables shared = VariablesOf(ranks[0], secrets);
  std::erase_if(shared, [](const auto& entry) { return !IsShellName(entry.first); });
  for (const v1::RankSpec& rank : ranks) {
    const Variables own = VariablesOf(rank, secrets);
    std::erase_if(shared, [&](const auto& entry) {
      const auto it = own.find(entry.first);
      return it == own.end() || it->second != entry.second;
    });
  }
  std::string exported;
  for (const std::string& name : secrets) {
    exported += fmt::format("printf 'export %s=%q\\n' {0} \"${0}\"\n", name);
  }
  std::string body;
  for (const auto& [name, value] : shared) {
    body += fmt::format("export {}={}\n", name, ShellQuoted(value));
  }
  body += "if [ -n \"${LOCAL:-}\" ]; then export MASTER_ADDR=127.0.0.1; fi\n";
  for (const v1::RankSpec& rank : ranks) body += StartLine(rank, shared, secrets);
  // A line of the job's own may look like the end of the here-document.
  std::string marker = "END_OF_NODE";
  while (body.find(marker) != std::string::npos) marker += "_";
  const std::string head = fmt::format(
      kNodeHead, fmt::arg("marker", marker), fmt::arg("host", node.host().host()),
      fmt::arg("first", node.first_rank()),
      fmt::arg("last", node.first_rank() + node.num_ranks() - 1),
      fmt::arg("export_secrets", exported), fmt::arg("folder", ShellQuoted(spec.working_dir())));
  return fmt::format("{}{}{}{}\n}} | on {} &\npids+=($!)\n", head, body, kNodeTail, marker,
                     SshWords(node.host()));
}

}  // namespace

absl::StatusOr<std::string> RenderScript(const v1::JobSpec& spec, const v1::Plan& plan,
                                         const ScriptOptions& options) {
  Launch launch;
  launch.master_port = options.master_port;
  launch.run_id = "script";
  std::string secrets;
  for (const std::string& name : SecretNames(spec)) {
    if (!IsShellName(name)) {
      return absl::InvalidArgumentError(
          fmt::format("secret {}: bash has no variables of such a name", name));
    }
    secrets +=
        fmt::format(": \"${{{0}:?set {0}, a secret of this job, before you run this}}\"\n", name);
  }
  std::string out =
      fmt::format(kHead, fmt::arg("name", plan.name()), fmt::arg("world", plan.world()),
                  fmt::arg("nodes", plan.nodes_size()), fmt::arg("secrets", secrets));
  for (const v1::NodePlan& node : plan.nodes()) {
    MUSTER_ASSIGN_OR_RETURN(const std::string text, NodeText(spec, plan, node, launch));
    out += text;
  }
  return out + std::string(kTail);
}

}  // namespace muster::plan
