#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "controller/nodes/ssh/config_text.h"
#include "controller/nodes/ssh/system_source.h"
#include "controller/nodes/ssh/target.h"
#include "tests/nodes/ssh/openssh.h"

// The installed OpenSSH as the oracle: whatever configuration is made up, `ssh -G` must say what we
// say.

namespace muster::nodes::ssh {
namespace {

using Facts = std::map<std::string, std::vector<std::string>>;

const std::vector<std::string> kCompared = {"hostname",
                                            "user",
                                            "port",
                                            "addressfamily",
                                            "identityfile",
                                            "identitiesonly",
                                            "identityagent",
                                            "proxyjump",
                                            "proxycommand",
                                            "userknownhostsfile",
                                            "globalknownhostsfile",
                                            "stricthostkeychecking",
                                            "hostkeyalias",
                                            "connecttimeout",
                                            "hashknownhosts"};

std::optional<Facts> AskSsh(const std::string& file, const std::string& host) {
  const auto text = Output("ssh -F " + file + " -G -- " + host);
  if (!text) return std::nullopt;
  Facts facts;
  for (const std::string& key : kCompared) facts[key] = {};
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const size_t blank = line.find(' ');
    const auto found = facts.find(line.substr(0, blank));
    if (found != facts.end()) found->second.push_back(line.substr(blank + 1));
  }
  return facts;
}

std::string Joined(const std::vector<std::string>& words, const std::string& separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string FormatJumps(const std::vector<HostSpec>& jumps) {
  std::vector<std::string> words;
  for (const HostSpec& jump : jumps) {
    // ssh prints the last hop anew, the others as they were written.
    const bool numeric = jump.host.find_first_not_of("0123456789.") == std::string::npos ||
                         jump.host.find(':') != std::string::npos;
    const std::string shown = numeric ? "[" + jump.host + "]" : jump.host;
    words.push_back((jump.user ? *jump.user + "@" : "") + shown +
                    (jump.port ? ":" + std::to_string(*jump.port) : ""));
  }
  return Joined(words, ",");
}

std::optional<Facts> AskOurs(const std::string& file, const std::string& host) {
  SystemSource source(nullptr);
  const ConfigRequest request = {.host = host, .file = file};
  const auto config = ReadConfig(request, source);
  const auto target = ResolveTarget(request, source);
  if (!config.ok() || !target.ok()) return std::nullopt;
  const auto yes = [](const std::optional<bool>& flag) {
    return std::vector<std::string>{flag.value_or(false) ? "yes" : "no"};
  };
  const auto maybe = [](const std::optional<std::string>& word) {
    return word ? std::vector<std::string>{*word} : std::vector<std::string>();
  };
  const std::map<AddressFamily, std::string> families = {{AddressFamily::kAny, "any"},
                                                         {AddressFamily::kInet, "inet"},
                                                         {AddressFamily::kInet6, "inet6"}};
  const std::map<HostKeyPolicy, std::string> policies = {{HostKeyPolicy::kYes, "true"},
                                                         {HostKeyPolicy::kNo, "false"},
                                                         {HostKeyPolicy::kAsk, "ask"},
                                                         {HostKeyPolicy::kAcceptNew, "accept-new"}};
  Facts facts;
  facts["hostname"] = {target->host};
  facts["user"] = {target->user};
  facts["port"] = {std::to_string(target->port)};
  facts["addressfamily"] = {families.at(target->family)};
  facts["identityfile"] = config->identity_files;
  facts["identitiesonly"] = yes(config->identities_only);
  facts["identityagent"] = maybe(config->identity_agent);
  // Printed as it will be used.
  if (config->identity_agent && config->identity_agent->substr(0, 2) == "${") {
    facts["identityagent"] = {target->agent};
  }
  const bool jumps = config->proxy_jump && !config->proxy_jump->empty();
  facts["proxyjump"] =
      jumps ? std::vector{FormatJumps(*config->proxy_jump)} : std::vector<std::string>();
  const bool command = config->proxy_command && ToLower(*config->proxy_command) != "none";
  facts["proxycommand"] = maybe(command ? config->proxy_command : std::nullopt);
  facts["userknownhostsfile"] = {Joined(config->user_known_hosts, " ")};
  facts["globalknownhostsfile"] = {Joined(config->global_known_hosts, " ")};
  facts["stricthostkeychecking"] = {policies.at(target->host_key_policy)};
  facts["hostkeyalias"] = maybe(config->host_key_alias);
  if (config->host_key_alias) facts["hostkeyalias"] = {ToLower(*config->host_key_alias)};
  facts["connecttimeout"] = {config->connect_timeout ? std::to_string(*config->connect_timeout)
                                                     : "none"};
  facts["hashknownhosts"] = yes(config->hash_known_hosts);
  return facts;
}

// ssh prints its defaults where nothing was said.
void DropDefaults(Facts& facts) {
  auto& files = facts["identityfile"];
  if (!files.empty() && files[0] == "~/.ssh/id_rsa" && files.size() > 3) files.clear();
  const std::string home = SystemSource(nullptr).User().home + "/.ssh/";
  for (const auto& [key, text] :
       {std::pair<std::string, std::string>{"userknownhostsfile",
                                            home + "known_hosts " + home + "known_hosts2"},
        {"globalknownhostsfile", "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"}}) {
    if (facts[key] == std::vector<std::string>{text}) facts[key] = {""};
  }
}

std::string Show(const std::optional<Facts>& facts) {
  if (!facts) return "an error";
  std::string text;
  for (const auto& [key, values] : *facts) text += key + "=" + Joined(values, "|") + "\n";
  return text;
}

void ExpectTheSame(const TemporaryFolder& folder, const std::string& host,
                   const std::function<void(const std::string&)>& fail) {
  const std::string file = folder.path() + "/config";
  auto theirs = AskSsh(file, host);
  const auto ours = AskOurs(file, host);
  if (theirs) DropDefaults(*theirs);
  if (theirs != ours) {
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    fail("host " + host + " in\n" + text.str() + "--- ssh says\n" + Show(theirs) + "--- we say\n" +
         Show(ours));
  }
}

rc::Gen<std::string> OneOf(std::vector<std::string> words) {
  return rc::gen::elementOf(std::move(words));
}

rc::Gen<std::string> SettingLine() {
  return OneOf({"HostName 10.0.0.7",
                "HostName %h.example.net",
                "HostName=UPPER.x",
                "HostName \"quoted\"",
                "HostName a%%b",
                "User bob",
                "User=ann",
                "User \"x y\"",
                "user  =  'z'",
                "Port 2222",
                "Port = 23",
                "port\t24",
                "Port 0",
                "Port 65536",
                "Port \"25\" # c",
                "IdentityFile ~/.ssh/a",
                "IdentityFile '/b c'",
                "IdentityFile /d\\ e",
                "IdentityFile ~/.ssh/a",
                "IdentityFile none",
                "IdentityFile \"/q\\\"r\"",
                "IdentitiesOnly yes",
                "IdentitiesOnly FALSE",
                "IdentitiesOnly maybe",
                "IdentityAgent /sock",
                "IdentityAgent none",
                "IdentityAgent ${HOME}/s",
                "IdentityAgent ${NO_SUCH_VARIABLE_X}/s",
                "ProxyJump u@b1:22,b2",
                "ProxyJump none",
                "ProxyJump b3:2200 # c",
                "ProxyJump a,,b",
                "ProxyJump ssh://b4:33",
                "ProxyCommand nc %h %p # x",
                "ProxyCommand none",
                "ProxyCommand = nc  -X 'a b'",
                "ProxyCommand 'open",
                "UserKnownHostsFile /k1 /k2",
                "UserKnownHostsFile none",
                "UserKnownHostsFile none /x",
                "GlobalKnownHostsFile \"/g 1\"",
                "StrictHostKeyChecking no",
                "StrictHostKeyChecking Accept-New",
                "StrictHostKeyChecking yes",
                "StrictHostKeyChecking off",
                "StrictHostKeyChecking x",
                "HostKeyAlias Pool",
                "ConnectTimeout 5",
                "ConnectTimeout 1m30s",
                "ConnectTimeout none",
                "ConnectTimeout 5x",
                "HashKnownHosts yes",
                "AddressFamily inet6",
                "AddressFamily Any",
                "Compression yes",
                "SendEnv LANG LC_*",
                "ForwardAgent yes",
                "ServerAliveInterval 7",
                "LogLevel ERROR",
                "Bogus 1",
                "IgnoreUnknown Bog*",
                "# comment",
                "",
                "   # User comment",
                "User",
                "User a b",
                "\"User\" quoted",
                "Us\"er\" odd",
                "HashKnownHosts"});
}

rc::Gen<std::string> BlockLine() {
  return OneOf({"Host *",
                "Host node1",
                "Host node? !node2",
                "Host !node1 *",
                "Host other node*",
                "Host NODE1",
                "Host \"node1\" # c",
                "Host",
                "Host n''ode1",
                "Match all",
                "Match !all",
                "Match host node1",
                "Match host NODE*,!node2 user ann",
                "Match originalhost node2",
                "Match user bob",
                "Match !user bob,ann",
                "Match host=10.* ",
                "Match localuser root",
                "Match final",
                "Match final host *.example.net",
                "Match canonical",
                "Match exec \"test %n = node1\"",
                "Match !exec \"false\"",
                "Match user bob all",
                "Match host",
                "Match bogus x",
                "Match host \"node1\" originalhost node*",
                "Include @/part",
                "Include @/p*",
                "Include @/missing",
                "Include @/part @/part2",
                "Match host x # c"});
}

rc::Gen<std::vector<std::string>> Lines() {
  return rc::gen::resize(
      14, rc::gen::container<std::vector<std::string>>(
              rc::gen::weightedOneOf<std::string>({{3, SettingLine()}, {1, BlockLine()}})));
}

std::string FileText(const std::vector<std::string>& lines, const std::string& folder) {
  std::string text;
  for (std::string line : lines) {
    for (size_t at = line.find('@');
         at != std::string::npos && at + 1 < line.size() && line[at + 1] == '/';
         at = line.find('@', at)) {
      line.replace(at, 1, folder);
    }
    text += line + "\n";
  }
  return text;
}

class OracleTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Output("ssh -G localhost")) GTEST_SKIP() << "no OpenSSH here";
  }
  TemporaryFolder folder_;
};

TEST_F(OracleTest, AnyConfigurationMeansTheSameToSshAndToUs) {
  const bool good = rc::check("ssh -G agrees", [this] {
    const auto lines = *Lines();
    folder_.Write("part", FileText(*rc::gen::resize(4, Lines()), folder_.path()));
    folder_.Write("part2", "User from-part2\nPort 99\n");
    folder_.Write("config", FileText(lines, folder_.path()));
    const std::string host = *OneOf({"node1", "node2", "10.1.2.3"});
    ExpectTheSame(folder_, host, [](const std::string& text) { RC_FAIL(text); });
  });
  EXPECT_TRUE(good);
}

// One line in a file of its own shows each rule by itself.
TEST_F(OracleTest, OddLines) {
  for (const char* line : {"User\ta\\\\b",
                           "User=\"a\"b",
                           "IdentityFile \"a\\\"b\"",
                           "IdentityFile a\\'b",
                           "IdentityFile '' ",
                           "User a#b",
                           "User #b",
                           "User \"#b\"",
                           "  User   x  ",
                           "=User x",
                           "User = = x",
                           "User==x",
                           "\"User x",
                           "User \"x",
                           "Host=node1\nUser y",
                           "Port 022",
                           "Port 5 ",
                           "Port ssh5x",
                           "User a\\ b",
                           "IdentityFile a\\ b",
                           "\fUser x",
                           "User x\f",
                           "User x\r",
                           "\vUser x",
                           "ConnectTimeout 0",
                           "ConnectTimeout 1w2d3h4m5s",
                           "ConnectTimeout 99999999999",
                           "ProxyJump [::1]:22",
                           "ProxyJump ::1",
                           "ProxyJump @b",
                           "ProxyJump b:",
                           "ProxyJump b:0",
                           "ProxyJump b/",
                           "ProxyJump u@v@b",
                           "HostName %%h",
                           "HostName %z",
                           "HostName %",
                           "Match host \"node1",
                           "Match user root\nPort 5",
                           "Match \"host\" node1\nPort 5",
                           "Match host node1 #x\nPort 5",
                           "Match host,x node1",
                           "Match all user x",
                           "Match\thost\tnode1\nPort 6",
                           "UserKnownHostsFile a '' b",
                           "IdentityAgent $SSH_AUTH_SOCK",
                           "IdentityAgent $1x",
                           "IdentityAgent ${HOME",
                           "Include",
                           "Include ''",
                           "Include relative-that-is-missing"}) {
    folder_.Write("config", line + std::string("\n"));
    ExpectTheSame(folder_, "node1", [](const std::string& text) { ADD_FAILURE() << text; });
  }
}

}  // namespace
}  // namespace muster::nodes::ssh
