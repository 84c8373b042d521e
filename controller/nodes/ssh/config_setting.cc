#include "controller/nodes/ssh/config_setting.h"

#include <algorithm>
#include <map>

#include "common/status.h"
#include "controller/nodes/ssh/config_text.h"
#include "controller/nodes/ssh/tokens.h"

namespace muster::nodes::ssh {
namespace {

constexpr size_t kMostIdentityFiles = 100;
constexpr size_t kMostKnownHostsFiles = 32;

absl::Status Bad(const Setting& setting, const std::string& why) {
  return absl::InvalidArgumentError(std::string(setting.name) + ": " + why);
}

template <typename T>
absl::Status Keep(const Setting& setting, std::optional<T>& slot, T value) {
  if (setting.active && !slot) slot = std::move(value);
  return absl::OkStatus();
}

// The one word that most keywords take.
absl::StatusOr<std::string> OneWord(const Setting& setting) {
  if (setting.words.empty() || setting.words[0].empty()) return Bad(setting, "no value");
  if (setting.words.size() > 1) {
    return Bad(setting, "takes one value, '" + setting.words[1] + "' is too much");
  }
  return setting.words[0];
}

absl::Status KeepWord(const Setting& setting, std::optional<std::string>& slot) {
  MUSTER_ASSIGN_OR_RETURN(std::string word, OneWord(setting));
  return Keep(setting, slot, std::move(word));
}

absl::Status KeepFlag(const Setting& setting, std::optional<bool>& slot) {
  MUSTER_ASSIGN_OR_RETURN(const std::string word, OneWord(setting));
  const auto flag = ParseFlag(word);
  if (!flag) return Bad(setting, "'" + word + "' is neither yes nor no");
  return Keep(setting, slot, *flag);
}

// "none" says nothing: a later value counts.
absl::Status KeepTime(const Setting& setting, std::optional<int>& slot) {
  MUSTER_ASSIGN_OR_RETURN(const std::string word, OneWord(setting));
  if (word == "none") return absl::OkStatus();
  const auto time = ParseTime(word);
  if (!time) return Bad(setting, "'" + word + "' is not a time such as 10 or 1m30s");
  return Keep(setting, slot, *time);
}

absl::Status KeepPort(const Setting& setting, Config& config) {
  MUSTER_ASSIGN_OR_RETURN(const std::string word, OneWord(setting));
  const auto port = ParsePort(word);
  if (!port) return Bad(setting, "'" + word + "' is not in 1 to 65535");
  return Keep(setting, config.port, *port);
}

template <typename T>
absl::Status KeepOneOf(const Setting& setting, const std::map<std::string, T>& values,
                       std::optional<T>& slot) {
  MUSTER_ASSIGN_OR_RETURN(const std::string word, OneWord(setting));
  const auto found = values.find(ToLower(word));
  if (found == values.end()) {
    std::string known;
    for (const auto& [name, value] : values) known += (known.empty() ? "" : ", ") + name;
    return Bad(setting, "'" + word + "' is not one of " + known);
  }
  return Keep(setting, slot, found->second);
}

absl::Status KeepFiles(const Setting& setting, std::vector<std::string>& files) {
  const bool first = files.empty();
  for (const std::string& word : setting.words) {
    if (word.empty()) return Bad(setting, "an empty path");
    if (ToLower(word) == "none" && setting.words.size() > 1) {
      return Bad(setting, "'none' stands alone");
    }
    if (!setting.active || !first) continue;
    if (files.size() == kMostKnownHostsFiles) return Bad(setting, "too many files");
    files.push_back(word);
  }
  return absl::OkStatus();
}

absl::Status KeepIdentityFile(const Setting& setting, Config& config) {
  MUSTER_ASSIGN_OR_RETURN(std::string word, OneWord(setting));
  auto& files = config.identity_files;
  if (!setting.active || std::find(files.begin(), files.end(), word) != files.end()) {
    return absl::OkStatus();
  }
  if (files.size() == kMostIdentityFiles) return Bad(setting, "too many of them");
  files.push_back(std::move(word));
  return absl::OkStatus();
}

absl::Status KeepIdentityAgent(const Setting& setting, const ConfigSource& source, Config& config) {
  MUSTER_ASSIGN_OR_RETURN(std::string word, OneWord(setting));
  auto expanded = ExpandVariables(word, source);
  if (!expanded.ok()) return Bad(setting, std::string(expanded.status().message()));
  return Keep(setting, config.identity_agent, std::move(word));
}

absl::Status KeepProxyJump(const Setting& setting, Config& config) {
  auto jumps = ParseJumps(setting.text);
  if (!jumps.ok()) return Bad(setting, std::string(jumps.status().message()));
  if (config.proxy_command) return absl::OkStatus();
  return Keep(setting, config.proxy_jump, *std::move(jumps));
}

absl::Status KeepAuthentications(const Setting& setting, Config& config) {
  MUSTER_ASSIGN_OR_RETURN(const std::string word, OneWord(setting));
  if (("," + word + ",").find(",publickey,") != std::string::npos) return absl::OkStatus();
  return Keep(setting, config.public_key, false);
}

// Errors only where they apply: another host's part may use what it likes.
absl::Status Foreign(const Setting& setting) {
  const std::string word = setting.words.empty() ? "" : ToLower(setting.words[0]);
  if (!setting.active || word == "none") return absl::OkStatus();
  return Bad(setting, "is only followed by your own ssh: use transport openssh for this host");
}

absl::Status ForeignUnlessNo(const Setting& setting) {
  MUSTER_ASSIGN_OR_RETURN(const std::string word, OneWord(setting));
  if (const auto flag = ParseFlag(word); flag && !*flag) return absl::OkStatus();
  return Foreign(setting);
}

absl::Status Unused(const Setting& setting, Config& config) {
  MUSTER_ASSIGN_OR_RETURN(const std::string word, OneWord(setting));
  if (setting.active && ToLower(word) != "none") {
    config.unused.push_back(std::string(setting.name) + " (" + setting.place + ")");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplySetting(const Setting& setting, const ConfigSource& source, Config& config) {
  switch (setting.keyword) {
    case Keyword::kHostName:
      return KeepWord(setting, config.host_name);
    case Keyword::kUser:
      return KeepWord(setting, config.user);
    case Keyword::kPort:
      return KeepPort(setting, config);
    case Keyword::kAddressFamily:
      return KeepOneOf(setting,
                       {{"any", AddressFamily::kAny},
                        {"inet", AddressFamily::kInet},
                        {"inet6", AddressFamily::kInet6}},
                       config.address_family);
    case Keyword::kConnectTimeout:
      return KeepTime(setting, config.connect_timeout);
    case Keyword::kIdentityFile:
      return KeepIdentityFile(setting, config);
    case Keyword::kIdentitiesOnly:
      return KeepFlag(setting, config.identities_only);
    case Keyword::kIdentityAgent:
      return KeepIdentityAgent(setting, source, config);
    case Keyword::kPubkeyAuthentication:
      return KeepOneOf<bool>(setting,
                             {{"yes", true},
                              {"true", true},
                              {"no", false},
                              {"false", false},
                              {"unbound", true},
                              {"host-bound", true}},
                             config.public_key);
    case Keyword::kPreferredAuthentications:
      return KeepAuthentications(setting, config);
    case Keyword::kProxyCommand:
      // Its words are for a shell and stay as they are. Of it and ProxyJump the first counts.
      if (config.proxy_jump && !config.proxy_jump->empty()) return absl::OkStatus();
      return Keep(setting, config.proxy_command,
                  std::string(setting.text.substr(
                      std::min(setting.text.find_first_not_of(" \t\r\n="), setting.text.size()))));
    case Keyword::kProxyJump:
      return KeepProxyJump(setting, config);
    case Keyword::kUserKnownHostsFile:
      return KeepFiles(setting, config.user_known_hosts);
    case Keyword::kGlobalKnownHostsFile:
      return KeepFiles(setting, config.global_known_hosts);
    case Keyword::kStrictHostKeyChecking:
      return KeepOneOf(setting,
                       {{"yes", HostKeyPolicy::kYes},
                        {"true", HostKeyPolicy::kYes},
                        {"no", HostKeyPolicy::kNo},
                        {"false", HostKeyPolicy::kNo},
                        {"off", HostKeyPolicy::kNo},
                        {"ask", HostKeyPolicy::kAsk},
                        {"accept-new", HostKeyPolicy::kAcceptNew}},
                       config.host_key_policy);
    case Keyword::kHostKeyAlias:
      return KeepWord(setting, config.host_key_alias);
    case Keyword::kHashKnownHosts:
      return KeepFlag(setting, config.hash_known_hosts);
    case Keyword::kUnusedLogin:
      return Unused(setting, config);
    case Keyword::kCanonicalizeHostname:
    case Keyword::kProxyUseFdpass:
      return ForeignUnlessNo(setting);
    default:
      return Foreign(setting);
  }
}

}  // namespace muster::nodes::ssh
