#include "controller/nodes/ssh/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/nodes/ssh/target.h"
#include "tests/nodes/ssh/memory_source.h"

namespace muster::nodes::ssh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kUsers[] = "/home/ada/.ssh/config";
constexpr char kSystems[] = "/etc/ssh/ssh_config";

class ConfigTest : public testing::Test {
 protected:
  Config Read(const std::string& text, const std::string& host = "node1") {
    source_.files[kUsers] = text;
    const auto config = ReadConfig({.host = host}, source_);
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? *config : Config();
  }
  Target Resolve(const std::string& text, const std::string& host = "node1") {
    source_.files[kUsers] = text;
    const auto target = ResolveTarget({.host = host}, source_);
    EXPECT_TRUE(target.ok()) << target.status();
    return target.ok() ? *target : Target();
  }
  std::string Error(const std::string& text, const std::string& host = "node1") {
    source_.files[kUsers] = text;
    const auto target = ResolveTarget({.host = host}, source_);
    EXPECT_FALSE(target.ok()) << text;
    return std::string(target.status().message());
  }
  MemorySource source_;
};

TEST_F(ConfigTest, NothingSaid) {
  const Target target = Resolve("");
  EXPECT_EQ(target.Describe(), "ada@node1");
  EXPECT_THAT(
      target.identity_files,
      ElementsAre("/home/ada/.ssh/id_rsa", "/home/ada/.ssh/id_ecdsa", "/home/ada/.ssh/id_ecdsa_sk",
                  "/home/ada/.ssh/id_ed25519", "/home/ada/.ssh/id_ed25519_sk"));
  EXPECT_EQ(target.host_key_policy, HostKeyPolicy::kAsk);
  EXPECT_THAT(target.user_known_hosts,
              ElementsAre("/home/ada/.ssh/known_hosts", "/home/ada/.ssh/known_hosts2"));
}

TEST_F(ConfigTest, TheFirstValueWinsAndTheUsersFileIsFirst) {
  source_.files[kSystems] = "Port 7\nUser system\nHostName sys.%h\n";
  const Target target = Resolve("Host node*\n  User first\nHost *\n  User second\n  Port 2222\n");
  EXPECT_EQ(target.Describe(), "first@sys.node1:2222");
}

TEST_F(ConfigTest, TheCommandLineIsBeforeAll) {
  source_.files[kUsers] = "User config\nPort 1\nIdentityFile /b\n";
  const auto target = ResolveTarget({.host = "n",
                                     .user = "line",
                                     .port = 2,
                                     .options = {"IdentityFile=/a", "HostName other"},
                                     .file = std::nullopt},
                                    source_);
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->Describe(), "line@other:2");
  EXPECT_THAT(target->identity_files, ElementsAre("/a", "/b"));
}

TEST_F(ConfigTest, AnotherFileInsteadOfBoth) {
  source_.files[kUsers] = "User u\n";
  source_.files[kSystems] = "Port 7\n";
  source_.files["/x"] = "Port 8\nInclude more\n";
  source_.files["/home/ada/.ssh/more"] = "User m\n";
  const auto target = ResolveTarget({.host = "n", .file = "/x"}, source_);
  EXPECT_EQ(target->Describe(), "m@n:8");
  EXPECT_EQ(ResolveTarget({.host = "n", .file = "none"}, source_)->Describe(), "ada@n");
  EXPECT_EQ(ResolveTarget({.host = "n", .file = "~/.ssh/more"}, source_)->Describe(), "m@n");
  EXPECT_EQ(ResolveTarget({.host = "n", .file = "/y"}, source_).status().message(),
            "/y: no such file");
}

TEST_F(ConfigTest, HostPatternsAndNegation) {
  const std::string text = "Host node? !node2 gpu*\n  User yes\nHost *\n User no\n";
  EXPECT_EQ(Read(text, "node1").user, "yes");
  EXPECT_EQ(Read(text, "node2").user, "no");
  EXPECT_EQ(Read(text, "gpu").user, "yes");
  EXPECT_EQ(Read(text, "node11").user, "no");
  EXPECT_EQ(Read("Host !node1 *\n User x\n", "node1").user, std::nullopt);
}

TEST_F(ConfigTest, MatchCriteria) {
  const auto port = [this](const std::string& words, const std::string& before = "") {
    return Read(before + "Match " + words + "\n  Port 99\n").port.has_value();
  };
  EXPECT_TRUE(port("all"));
  EXPECT_FALSE(port("!all"));
  EXPECT_TRUE(port("host node1"));
  EXPECT_TRUE(port("Host NODE?,!node2"));
  EXPECT_FALSE(port("host node1", "HostName elsewhere\n"));
  EXPECT_TRUE(port("host elsewhere-node1", "HostName elsewhere-%h\n"));
  EXPECT_TRUE(port("originalhost node1", "HostName elsewhere\n"));
  EXPECT_TRUE(port("user ada"));
  EXPECT_TRUE(port("user bob", "User bob\n"));
  EXPECT_TRUE(port("user=\"ada\" !host=x"));
  EXPECT_FALSE(port("user ada host x"));
  EXPECT_TRUE(port("localuser ada", "User bob\n"));
  EXPECT_FALSE(port("canonical"));
  EXPECT_TRUE(port("user ada # a comment"));
}

TEST_F(ConfigTest, MatchExecRunsWhenAllBeforeItHolds) {
  EXPECT_EQ(Read("Match host node1 exec \"true %n %h %r %p %u\"\n Port 9\n").port, 9);
  EXPECT_THAT(source_.commands, ElementsAre("true node1 node1 ada 22 ada"));
  source_.commands.clear();
  EXPECT_EQ(Read("Match host other exec true\n Port 9\n").port, std::nullopt);
  EXPECT_EQ(Read("Match exec false\n Port 9\n").port, std::nullopt);
  EXPECT_EQ(Read("Match !exec false\n Port 9\n").port, 9);
  EXPECT_THAT(source_.commands, ElementsAre("false", "false"));
}

TEST_F(ConfigTest, MatchFinalReadsTwice) {
  const Target target = Resolve(
      "Match final host real-node1\n  User late\nHost node1\n  HostName real-%h\n  Port 5\n");
  EXPECT_EQ(target.Describe(), "late@real-node1:5");
}

TEST_F(ConfigTest, Includes) {
  source_.files["/home/ada/.ssh/a.conf"] = "User a\nHost other\n  Port 3\n";
  source_.files["/home/ada/.ssh/b.conf"] = "Port 4\n";
  EXPECT_EQ(Resolve("Include *.conf\nPort 5\n").Describe(), "a@node1:4");
  EXPECT_EQ(Resolve("Host nothing\nInclude *.conf\nHost *\nPort 6\n").Describe(), "ada@node1:6");
  // A Host line inside does not reach beyond the file's end.
  EXPECT_EQ(Resolve("Include a.conf\nPort 5\n").Describe(), "a@node1:5");
  source_.files[kUsers + std::string(".x")] = "Include ~/.ssh/config.x\n";
  EXPECT_THAT(Error("Include ~/.ssh/config.x\n"), HasSubstr("goes deeper than 16 files"));
}

TEST_F(ConfigTest, Paths) {
  source_.environment["KEYS"] = "/keys";
  const Target target = Resolve(
      "IdentityFile ~/.ssh/%r@%h\nIdentityFile \"${KEYS}/a b-%n-%L-%i-%%\"\nIdentityFile none\n"
      "UserKnownHostsFile /a ~/b\nGlobalKnownHostsFile none\nHostName H1\nIdentityAgent %d/sock\n");
  EXPECT_THAT(target.identity_files,
              ElementsAre("/home/ada/.ssh/ada@h1", "/keys/a b-node1-desk-1000-%"));
  EXPECT_THAT(target.user_known_hosts, ElementsAre("/a", "/home/ada/b"));
  EXPECT_TRUE(target.global_known_hosts.empty());
  EXPECT_EQ(target.agent, "/home/ada/sock");
}

TEST_F(ConfigTest, Agents) {
  source_.environment = {{"SSH_AUTH_SOCK", "/env"}, {"MINE", "/mine"}};
  EXPECT_EQ(Resolve("").agent, "/env");
  EXPECT_EQ(Resolve("IdentityAgent SSH_AUTH_SOCK").agent, "/env");
  EXPECT_EQ(Resolve("IdentityAgent none").agent, "");
  EXPECT_EQ(Resolve("IdentityAgent $MINE").agent, "/mine");
  EXPECT_EQ(Resolve("IdentityAgent ${MINE}/x").agent, "/mine/x");
}

TEST_F(ConfigTest, KnownNames) {
  EXPECT_EQ(Resolve("HostName A.example\n").known_name, "a.example");
  const Target ported = Resolve("HostName A.example\nPort 2222\n");
  EXPECT_EQ(ported.known_name, "[a.example]:2222");
  EXPECT_EQ(ported.known_name_bare, "a.example");
  const Target alias = Resolve("HostKeyAlias Pool\nPort 2222\n");
  EXPECT_EQ(alias.known_name, "pool");
  EXPECT_EQ(alias.known_name_bare, "");
}

TEST_F(ConfigTest, ProxiesTheFirstCounts) {
  EXPECT_EQ(Resolve("ProxyCommand nc -q0 %h %p # not a comment\nProxyJump b\n").proxy_command,
            "nc -q0 node1 22 # not a comment");
  EXPECT_EQ(Resolve("ProxyJump b\nProxyCommand nc %h\n").proxy_command, "");
  EXPECT_EQ(Resolve("ProxyJump none\nProxyCommand nc %h\n").proxy_command, "nc node1");
  EXPECT_TRUE(Resolve("ProxyJump none\nProxyJump b\n").proxy_jump.empty());
  EXPECT_TRUE(Resolve("ProxyCommand none\nProxyJump b\n").proxy_jump.empty());
}

TEST_F(ConfigTest, RoutesAsOpensshMakesThem) {
  source_.files[kUsers] =
      "Host inner\n  ProxyJump u1@outer:2200,middle\nHost outer\n  HostName 10.0.0.1\n"
      "Host middle\n  User m\n  ProxyJump elsewhere\nHost lone\n  ProxyJump middle\n"
      "Host elsewhere\n  Port 3\nHost a\n  ProxyJump b\nHost b\n  ProxyJump a\n";
  const auto route = [this](const std::string& host) {
    const auto targets = ResolveRoute({.host = host}, source_);
    if (!targets.ok()) return std::string(targets.status().message());
    std::string text;
    for (const Target& target : *targets) text += target.Describe() + " ";
    return text;
  };
  EXPECT_EQ(route("inner"), "u1@10.0.0.1:2200 m@middle ada@inner ");
  EXPECT_EQ(route("lone"), "ada@elsewhere:3 m@middle ada@lone ");
  EXPECT_THAT(route("a"), HasSubstr("more than 8 hops"));
}

TEST_F(ConfigTest, WhatIsWrongHasItsPlace) {
  EXPECT_EQ(Error("\n Prot 22\n"),
            "/home/ada/.ssh/config:2: unknown keyword 'Prot'; did you mean 'port'?; if ssh knows "
            "it, use transport openssh");
  EXPECT_EQ(Error("Port 0"), "/home/ada/.ssh/config:1: Port: '0' is not in 1 to 65535");
  EXPECT_EQ(Error("Host x\n Port no\n"),
            "/home/ada/.ssh/config:2: Port: 'no' is not in 1 to 65535");
  EXPECT_EQ(Error("User"), "/home/ada/.ssh/config:1: nothing after User");
  EXPECT_EQ(Error("User a b"), "/home/ada/.ssh/config:1: User: takes one value, 'b' is too much");
  EXPECT_EQ(Error("User 'a"), "/home/ada/.ssh/config:1: a quote ' is not closed");
  EXPECT_EQ(Error("IdentityFile ~/%z\n"), "unknown token %z in '/home/ada/%z'");
  EXPECT_EQ(Error("StrictHostKeyChecking maybe"),
            "/home/ada/.ssh/config:1: StrictHostKeyChecking: 'maybe' is not one of accept-new, "
            "ask, false, no, off, true, yes");
  EXPECT_THAT(Error("Match hots x"), HasSubstr("did you mean 'host'?"));
  EXPECT_THAT(Error("ProxyJump a,,b"), HasSubstr("'' is not [USER@]HOST[:PORT]"));
  EXPECT_THAT(Error("Include /x\nInclude ''"), HasSubstr("config:2: an empty path after Include"));
}

TEST_F(ConfigTest, WhatOnlySshFollowsIsRefusedWhereItApplies) {
  EXPECT_EQ(Error("CanonicalizeHostname yes"),
            "/home/ada/.ssh/config:1: CanonicalizeHostname: is only followed by your own ssh: use "
            "transport openssh for this host");
  EXPECT_THAT(Error("BindAddress 10.0.0.1"), HasSubstr("transport openssh"));
  EXPECT_THAT(Error("RevokedHostKeys /krl"), HasSubstr("transport openssh"));
  EXPECT_EQ(Resolve("CanonicalizeHostname no\nRemoteCommand none\nHost x\nBindAddress 1.1.1.1\n")
                .Describe(),
            "ada@node1");
}

TEST_F(ConfigTest, WhatDoesNotMatterIsPassedOver) {
  EXPECT_EQ(Read("ControlMaster auto\nForwardAgent yes\nSendEnv LANG LC_*\nCompression yes\n"
                 "GSSAPIAuthentication yes\nServerAliveInterval 5\nIgnoreUnknown Foo*\nFooBar 1\n"
                 "User x\n")
                .user,
            "x");
  EXPECT_THAT(Read("\n\nCertificateFile ~/c\nPKCS11Provider none\n").unused,
              ElementsAre("CertificateFile (/home/ada/.ssh/config:3)"));
}

TEST_F(ConfigTest, NamesThatAShellCouldMisreadAreNoNames) {
  EXPECT_THAT(Error("", "-oProxyCommand=x"), HasSubstr("is no host name"));
  EXPECT_THAT(Error("HostName a;b"), HasSubstr("is no host name"));
  EXPECT_THAT(Error("User -x"), HasSubstr("is no user name"));
  EXPECT_THAT(Error("ProxyJump -x"), HasSubstr("characters that no host or user has"));
}

TEST_F(ConfigTest, OddBytes) {
  EXPECT_THAT(Error(std::string("User a\0b", 8)), HasSubstr("zero byte"));
  EXPECT_EQ(Read("user\t=\t\"a b\"\r\n  # comment\n\f\n\"Port\" 7 # c\n").user, "a b");
  EXPECT_EQ(Read("Port=7").port, 7);
}

}  // namespace
}  // namespace muster::nodes::ssh
