#include "controller/nodes/ssh/target.h"

#include <utility>

#include "common/status.h"
#include "controller/nodes/ssh/config_text.h"
#include "controller/nodes/ssh/tokens.h"

namespace muster::nodes::ssh {
namespace {

constexpr uint16_t kSshPort = 22;
constexpr size_t kMostHops = 8;

std::string HostPort(const std::string& host, uint16_t port) {
  if (port == kSshPort) return host;
  return "[" + host + "]:" + std::to_string(port);
}

bool IsNone(const std::string& word) {
  return ToLower(word) == "none";
}

absl::StatusOr<std::vector<std::string>> ExpandPaths(const std::vector<std::string>& paths,
                                                     const Tokens& tokens,
                                                     const ConfigSource& source) {
  std::vector<std::string> expanded;
  for (const std::string& path : paths) {
    if (IsNone(path)) continue;
    MUSTER_ASSIGN_OR_RETURN(std::string one, ExpandPath(path, tokens, source));
    expanded.push_back(std::move(one));
  }
  return expanded;
}

std::vector<std::string> Or(const std::vector<std::string>& given,
                            const std::vector<std::string>& defaults) {
  return given.empty() ? defaults : given;
}

absl::StatusOr<std::string> AgentSocket(const Config& config, const Tokens& tokens,
                                        const ConfigSource& source) {
  constexpr char kVariable[] = "SSH_AUTH_SOCK";
  const std::string word = config.identity_agent.value_or(kVariable);
  if (word == kVariable) return source.Env(kVariable).value_or("");
  if (word == "none") return "";
  if (word.front() == '$' && word.substr(0, 2) != "${") {
    return source.Env(word.substr(1)).value_or("");
  }
  return ExpandPath(word, tokens, source);
}

absl::StatusOr<std::vector<Target>> Route(const ConfigRequest& request,
                                          std::vector<HostSpec> given_jumps, ConfigSource& source,
                                          size_t depth) {
  if (depth > kMostHops) {
    return absl::InvalidArgumentError("ProxyJump of " + request.host + " goes over more than " +
                                      std::to_string(kMostHops) +
                                      " hops; do hops lead to each other?");
  }
  MUSTER_ASSIGN_OR_RETURN(Target target, ResolveTarget(request, source));
  if (!given_jumps.empty()) {
    target.proxy_command.clear();
    target.proxy_jump = std::move(given_jumps);
  }
  std::vector<Target> route;
  if (!target.proxy_jump.empty()) {
    std::vector<HostSpec> before = target.proxy_jump;
    const HostSpec nearest = std::move(before.back());
    before.pop_back();
    const ConfigRequest hop = {.host = nearest.host,
                               .user = nearest.user,
                               .port = nearest.port,
                               .options = {},
                               .file = request.file};
    auto hops = Route(hop, std::move(before), source, depth + 1);
    if (!hops.ok()) return hops.status();
    route = *std::move(hops);
  }
  route.push_back(std::move(target));
  return route;
}

}  // namespace

std::string Target::Describe() const {
  const bool v6 = host.find(':') != std::string::npos;
  const std::string shown = v6 ? "[" + host + "]" : host;
  return user + "@" + shown + (port == kSshPort ? "" : ":" + std::to_string(port));
}

absl::StatusOr<Target> ResolveTarget(const ConfigRequest& request, ConfigSource& source) {
  MUSTER_ASSIGN_OR_RETURN(const Config config, ReadConfig(request, source));
  const LocalUser local = source.User();
  Target target;
  target.original = request.host;
  MUSTER_ASSIGN_OR_RETURN(const std::string host,
                          ExpandTokens(config.host_name.value_or("%h"), {{'h', request.host}}));
  target.host = ToLower(host);
  target.port = config.port.value_or(kSshPort);
  target.user = config.user.value_or(local.name);
  if (!IsSaneHost(target.host)) {
    return absl::InvalidArgumentError("'" + target.host + "' is no host name");
  }
  if (!IsSaneUser(target.user)) {
    return absl::InvalidArgumentError("'" + target.user + "' is no user name");
  }
  target.family = config.address_family.value_or(AddressFamily::kAny);
  if (config.connect_timeout.value_or(0) > 0) {
    target.connect_timeout = std::chrono::seconds(*config.connect_timeout);
  }

  const std::string alias = ToLower(config.host_key_alias.value_or(""));
  const Tokens tokens = MakeTokens({.original = request.host,
                                    .host = target.host,
                                    .alias = alias.empty() ? request.host : alias,
                                    .user = target.user,
                                    .port = target.port},
                                   local);
  target.chosen_identities = !config.identity_files.empty();
  MUSTER_ASSIGN_OR_RETURN(target.identity_files,
                          ExpandPaths(Or(config.identity_files,
                                         {"~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ecdsa_sk",
                                          "~/.ssh/id_ed25519", "~/.ssh/id_ed25519_sk"}),
                                      tokens, source));
  target.identities_only = config.identities_only.value_or(false);
  target.public_key = config.public_key.value_or(true);
  MUSTER_ASSIGN_OR_RETURN(target.agent, AgentSocket(config, tokens, source));
  target.unused = config.unused;

  target.known_name = alias.empty() ? HostPort(target.host, target.port) : alias;
  if (alias.empty() && target.port != kSshPort) target.known_name_bare = target.host;
  MUSTER_ASSIGN_OR_RETURN(
      target.user_known_hosts,
      ExpandPaths(Or(config.user_known_hosts, {"~/.ssh/known_hosts", "~/.ssh/known_hosts2"}),
                  tokens, source));
  MUSTER_ASSIGN_OR_RETURN(target.global_known_hosts,
                          ExpandPaths(Or(config.global_known_hosts,
                                         {"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}),
                                      tokens, source));
  target.host_key_policy = config.host_key_policy.value_or(HostKeyPolicy::kAsk);
  target.hash_known_hosts = config.hash_known_hosts.value_or(false);

  target.proxy_jump = config.proxy_jump.value_or(std::vector<HostSpec>());
  if (config.proxy_command && !IsNone(*config.proxy_command)) {
    MUSTER_ASSIGN_OR_RETURN(target.proxy_command, ExpandTokens(*config.proxy_command, tokens));
  }
  return target;
}

absl::StatusOr<std::vector<Target>> ResolveRoute(const ConfigRequest& request,
                                                 ConfigSource& source) {
  return Route(request, {}, source, 0);
}

}  // namespace muster::nodes::ssh
