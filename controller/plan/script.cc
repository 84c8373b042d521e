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

constexpr int64_t kDefaultGrace = 30;  // seconds between TERM and KILL, as the controller's

constexpr std::string_view kHead = R"(#!/usr/bin/env bash
# Job {name}: {world} ranks on {nodes} hosts. What `muster submit` would start, as plain bash.
#
#   bash SCRIPT            over ssh (keys or an agent; no password is asked for)
#   LOCAL=1 bash SCRIPT    all ranks on this machine, to see that it runs
#
# Differences from muster: MASTER_PORT is fixed, and fails if it is taken; no host is checked first; a rank that
# leaves its process group outlives the job; a host that loses the network ends its ranks only when its sshd gives up;
# logs are one stream of lines with the rank before them, kept nowhere; nothing is restarted. Needs bash 4.4 or newer.
{transports}set -uo pipefail
{secrets})";

// `start` to `run_host` are for the hosts; the script sends them there.
constexpr std::string_view kFunctions = R"(
# Waits for all of pids. The first status other than 0 is the whole's, and makes $1 end the others.
wait_all() {
  local pid code tick= left running=("${pids[@]}")
  status=0
  while true; do
    left=()
    for pid in "${running[@]}"; do
      if kill -0 "$pid" 2>/dev/null; then left+=("$pid"); continue; fi
      wait "$pid" 2>/dev/null
      code=$?
      if [ "$code" -ne 0 ] && [ "$status" -eq 0 ]; then status=$code; "$1"; fi
    done
    if [ "${#left[@]}" -eq 0 ]; then return; fi
    running=("${left[@]}")
    if [ -n "$deadline" ] && [ "$SECONDS" -ge "$deadline" ]; then
      for pid in "${running[@]}"; do kill -KILL -- "-$pid" 2>/dev/null; done
    fi
    if ! kill -0 "$tick" 2>/dev/null; then sleep 1 >/dev/null 2>&1 & tick=$!; fi
    wait -n "${running[@]}" "$tick" 2>/dev/null
  done
}
start() {  # RANK NAME=VALUE... -- ARGV...
  if [ -n "$deadline" ]; then return; fi
  local rank=$1 output variables=()
  shift
  while [ "$1" != -- ]; do
    variables+=("$1")
    shift
  done
  shift
  # Not of the rank's process group, so that its last lines are not lost when the group is ended.
  exec {output}> >(trap '' INT TERM HUP; exec sed -u "s/^/[$rank] /")
  seds+=($!)
  # A process group of its own, so that its children end with it.
  set -m
  env "${variables[@]}" "$@" </dev/null >&"$output" 2>&1 {output}>&- &
  set +m
  pids+=($!)
  exec {output}>&-
}
end_ranks() {
  if [ -n "$deadline" ]; then return; fi
  deadline=$((SECONDS + grace))
  for pid in "${pids[@]}"; do kill -CONT -- "-$pid" 2>/dev/null; kill -TERM -- "-$pid" 2>/dev/null; done
}
run_host() {  # GRACE: starts a host's ranks, ends all when one fails, exits with the first failure's status
  grace=$1 deadline= pids=() seds=()
  trap end_ranks INT TERM HUP
  # The end of stdin is the end of the job.
  { while read -r _; do :; done; kill -HUP $$; } <&0 >/dev/null 2>&1 &
  trap "kill $! 2>/dev/null" EXIT
  start_ranks
  wait_all end_ranks
  # What the ranks wrote last; what outlives its rank may hold the pipe for ever.
  for ((i = 0; i < 50; ++i)); do
    kill -0 "${seds[@]}" 2>/dev/null || break
    sleep 0.1
  done
  exit "$status"
}

# A bash on a host, which reads its commands from stdin.
on() {
  if [ -n "${LOCAL:-}" ]; then exec bash -s; fi
  exec ssh -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=15 "$@" bash -s
}
# Keeps a host's stdin open for as long as this script lives and wants its ranks.
lifeline() { while kill -0 $$ && echo; do sleep 1 >/dev/null; done 2>/dev/null; }
launch() {  # FUNCTION SSH-ARGUMENT...: the ranks that FUNCTION writes down, on a host
  local input
  exec {input}< <(secrets; declare -f wait_all start end_ranks run_host; "$1"; lifeline)
  lifelines+=($!)
  shift
  on "$@" <&"$input" &
  pids+=($!)
  exec {input}<&-
}
end_hosts() { kill "${lifelines[@]}" 2>/dev/null; }
host_failed() {
  echo "a host ended with status $status: ending the others" >&2
  end_hosts
}
deadline= pids=() lifelines=()
trap 'trap - INT TERM; end_hosts; wait "${pids[@]}"; exit 130' INT TERM
)";

constexpr std::string_view kTail = R"(
wait_all host_failed
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

// "direct": what is said of how to reach the host, by its line or by --transport; the words after
// a colon are of ssh or of the command.
std::string TransportOf(const v1::Host& host, const v1::JobSpec& spec) {
  const std::string& all = spec.default_transport();
  return host.has_transport() ? host.transport() : all.substr(0, all.find('\n'));
}

// Comment lines for the head, where muster would not go by plain ssh.
std::string OtherTransports(const v1::JobSpec& spec, const v1::Plan& plan) {
  std::string out;
  for (const v1::NodePlan& node : plan.nodes()) {
    const std::string transport = TransportOf(node.host(), spec);
    if (transport.empty() || transport == "ssh" || transport == "openssh") continue;
    out += fmt::format("#   {}: transport {}\n", node.host().host(), transport);
  }
  if (out.empty()) return out;
  return "#\n# muster reaches these hosts otherwise, this script by plain ssh (or LOCAL=1):\n" +
         out;
}

absl::Status CheckTransports(const v1::JobSpec& spec, const v1::Plan& plan) {
  for (const v1::NodePlan& node : plan.nodes()) {
    const std::string transport = TransportOf(node.host(), spec);
    if (transport.substr(0, transport.find(':')) != "command") continue;
    return absl::InvalidArgumentError(fmt::format(
        "--script goes by ssh, and {} is reached by a command (transport {}): give --transport "
        "openssh, and take transport= off its line, if ssh works there too",
        node.host().host(), transport));
  }
  return absl::OkStatus();
}

int64_t GraceSeconds(const v1::JobSpec& spec) {
  if (!spec.has_grace()) return kDefaultGrace;
  return spec.grace().seconds() + (spec.grace().nanos() > 0 ? 1 : 0);
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
  // A function, so that bash has read all of it before it starts the first rank.
  std::string body = fmt::format("start_ranks() {{\ncd -- {} || exit 1\nset -uo pipefail\n",
                                 ShellQuoted(spec.working_dir()));
  for (const auto& [name, value] : shared) {
    body += fmt::format("export {}={}\n", name, ShellQuoted(value));
  }
  body += "if [ -n \"${LOCAL:-}\" ]; then export MASTER_ADDR=127.0.0.1; fi\n";
  for (const v1::RankSpec& rank : ranks) body += StartLine(rank, shared, secrets);
  body += fmt::format("}}\nrun_host {}\n", GraceSeconds(spec));
  // A line of the job's own may look like the end of the here-document.
  std::string marker = "END_OF_NODE";
  while (body.find(marker) != std::string::npos) marker += "_";
  return fmt::format(
      "\n# {0}: ranks {1}-{2}\nranks_{1}() {{\ncat <<'{3}'\n{4}{3}\n}}\n"
      "launch ranks_{1} {5}\n",
      node.host().host(), node.first_rank(), node.first_rank() + node.num_ranks() - 1, marker, body,
      SshWords(node.host()));
}

}  // namespace

absl::StatusOr<std::string> RenderScript(const v1::JobSpec& spec, const v1::Plan& plan,
                                         const ScriptOptions& options) {
  MUSTER_RETURN_IF_ERROR(CheckTransports(spec, plan));
  Launch launch;
  launch.master_port = options.master_port;
  launch.run_id = "script";
  std::string asked;
  std::string sent;  // by stdin, so that no command line shows them
  for (const std::string& name : SecretNames(spec)) {
    if (!IsShellName(name)) {
      return absl::InvalidArgumentError(
          fmt::format("secret {}: bash has no variables of such a name", name));
    }
    asked +=
        fmt::format(": \"${{{0}:?set {0}, a secret of this job, before you run this}}\"\n", name);
    sent += fmt::format(" printf 'export %s=%q\\n' {0} \"${0}\";", name);
  }
  std::string out =
      fmt::format(kHead, fmt::arg("name", plan.name()), fmt::arg("world", plan.world()),
                  fmt::arg("nodes", plan.nodes_size()), fmt::arg("secrets", asked),
                  fmt::arg("transports", OtherTransports(spec, plan)));
  out += kFunctions;
  out += fmt::format("secrets() {{{} }}\n", sent.empty() ? " :;" : sent);
  for (const v1::NodePlan& node : plan.nodes()) {
    MUSTER_ASSIGN_OR_RETURN(const std::string text, NodeText(spec, plan, node, launch));
    out += text;
  }
  return out + std::string(kTail);
}

}  // namespace muster::plan
