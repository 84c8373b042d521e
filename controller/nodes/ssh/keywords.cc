#include "controller/nodes/ssh/keywords.h"

#include <array>
#include <unordered_map>

namespace muster::nodes::ssh {
namespace {

struct Entry {
  std::string_view name;
  Keyword keyword;
};

constexpr std::array kKeywords = {
    Entry{"host", Keyword::kHost},
    Entry{"match", Keyword::kMatch},
    Entry{"include", Keyword::kInclude},
    Entry{"ignoreunknown", Keyword::kIgnoreUnknown},
    Entry{"hostname", Keyword::kHostName},
    Entry{"user", Keyword::kUser},
    Entry{"port", Keyword::kPort},
    Entry{"addressfamily", Keyword::kAddressFamily},
    Entry{"connecttimeout", Keyword::kConnectTimeout},
    Entry{"identityfile", Keyword::kIdentityFile},
    Entry{"identityfile2", Keyword::kIdentityFile},
    Entry{"identitiesonly", Keyword::kIdentitiesOnly},
    Entry{"identityagent", Keyword::kIdentityAgent},
    Entry{"pubkeyauthentication", Keyword::kPubkeyAuthentication},
    Entry{"dsaauthentication", Keyword::kPubkeyAuthentication},
    Entry{"preferredauthentications", Keyword::kPreferredAuthentications},
    Entry{"proxycommand", Keyword::kProxyCommand},
    Entry{"proxyjump", Keyword::kProxyJump},
    Entry{"userknownhostsfile", Keyword::kUserKnownHostsFile},
    Entry{"globalknownhostsfile", Keyword::kGlobalKnownHostsFile},
    Entry{"stricthostkeychecking", Keyword::kStrictHostKeyChecking},
    Entry{"hostkeyalias", Keyword::kHostKeyAlias},
    Entry{"hashknownhosts", Keyword::kHashKnownHosts},
    Entry{"certificatefile", Keyword::kUnusedLogin},
    Entry{"pkcs11provider", Keyword::kUnusedLogin},
    Entry{"smartcarddevice", Keyword::kUnusedLogin},
    Entry{"canonicalizehostname", Keyword::kCanonicalizeHostname},
    Entry{"proxyusefdpass", Keyword::kProxyUseFdpass},
    Entry{"bindaddress", Keyword::kForeign},
    Entry{"bindinterface", Keyword::kForeign},
    Entry{"knownhostscommand", Keyword::kForeign},
    Entry{"revokedhostkeys", Keyword::kForeign},
    Entry{"remotecommand", Keyword::kForeign},
};

constexpr auto kIgnored = std::to_array<std::string_view>({"addkeystoagent",
                                                           "afstokenpassing",
                                                           "batchmode",
                                                           "canonicaldomains",
                                                           "canonicalizefallbacklocal",
                                                           "canonicalizemaxdots",
                                                           "canonicalizepermittedcnames",
                                                           "casignaturealgorithms",
                                                           "challengeresponseauthentication",
                                                           "channeltimeout",
                                                           "checkhostip",
                                                           "cipher",
                                                           "ciphers",
                                                           "clearallforwardings",
                                                           "compression",
                                                           "compressionlevel",
                                                           "connectionattempts",
                                                           "controlmaster",
                                                           "controlpath",
                                                           "controlpersist",
                                                           "dynamicforward",
                                                           "enableescapecommandline",
                                                           "enablesshkeysign",
                                                           "escapechar",
                                                           "exitonforwardfailure",
                                                           "fallbacktorsh",
                                                           "fingerprinthash",
                                                           "forkafterauthentication",
                                                           "forwardagent",
                                                           "forwardx11",
                                                           "forwardx11timeout",
                                                           "forwardx11trusted",
                                                           "gatewayports",
                                                           "globalknownhostsfile2",
                                                           "gssapiauthentication",
                                                           "gssapidelegatecredentials",
                                                           "gssapikeyexchange",
                                                           "hostbasedacceptedalgorithms",
                                                           "hostbasedauthentication",
                                                           "hostbasedkeytypes",
                                                           "hostkeyalgorithms",
                                                           "ipqos",
                                                           "kbdinteractiveauthentication",
                                                           "kbdinteractivedevices",
                                                           "keepalive",
                                                           "kerberosauthentication",
                                                           "kerberostgtpassing",
                                                           "kexalgorithms",
                                                           "localcommand",
                                                           "localforward",
                                                           "loglevel",
                                                           "logverbose",
                                                           "macs",
                                                           "nohostauthenticationforlocalhost",
                                                           "numberofpasswordprompts",
                                                           "obscurekeystroketiming",
                                                           "passwordauthentication",
                                                           "permitlocalcommand",
                                                           "permitremoteopen",
                                                           "protocol",
                                                           "pubkeyacceptedalgorithms",
                                                           "pubkeyacceptedkeytypes",
                                                           "rekeylimit",
                                                           "remoteforward",
                                                           "requesttty",
                                                           "requiredrsasize",
                                                           "rhostsauthentication",
                                                           "rhostsrsaauthentication",
                                                           "rsaauthentication",
                                                           "securitykeyprovider",
                                                           "serveralivecountmax",
                                                           "serveraliveinterval",
                                                           "sendenv",
                                                           "sessiontype",
                                                           "setenv",
                                                           "skeyauthentication",
                                                           "stdinnull",
                                                           "streamlocalbindmask",
                                                           "streamlocalbindunlink",
                                                           "syslogfacility",
                                                           "tcpkeepalive",
                                                           "tisauthentication",
                                                           "tunnel",
                                                           "tunneldevice",
                                                           "updatehostkeys",
                                                           "useprivilegedport",
                                                           "userknownhostsfile2",
                                                           "useroaming",
                                                           "usersh",
                                                           "verifyhostkeydns",
                                                           "visualhostkey",
                                                           "xauthlocation"});

std::unordered_map<std::string_view, Keyword> MakeTable() {
  std::unordered_map<std::string_view, Keyword> table;
  for (const Entry& entry : kKeywords) table.emplace(entry.name, entry.keyword);
  for (const std::string_view name : kIgnored) table.emplace(name, Keyword::kIgnored);
  return table;
}

}  // namespace

std::optional<Keyword> FindKeyword(std::string_view name) {
  static const auto table = MakeTable();
  const auto found = table.find(name);
  if (found == table.end()) return std::nullopt;
  return found->second;
}

const std::vector<std::string>& KeywordNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    all.reserve(kKeywords.size() + kIgnored.size());
    for (const Entry& entry : kKeywords) all.emplace_back(entry.name);
    for (const std::string_view name : kIgnored) all.emplace_back(name);
    return all;
  }();
  return names;
}

}  // namespace muster::nodes::ssh
