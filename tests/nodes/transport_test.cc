#include "controller/nodes/transport.h"

#include <gtest/gtest.h>

namespace muster::nodes {
namespace {

v1::Host MakeHost(const std::string& name, const std::string& transport = "") {
  v1::Host host;
  host.set_host(name);
  host.set_line(3);
  if (!transport.empty()) host.set_transport(transport);
  return host;
}

std::string Describe(const v1::Host& host, const std::string& default_transport = "") {
  const auto endpoint = ResolveEndpoint(host, default_transport);
  return endpoint.ok() ? endpoint->Describe() : std::string(endpoint.status().message());
}

TEST(TransportTest, LoopbackHostsAreLocalByDefault) {
  EXPECT_EQ(Describe(MakeHost("127.0.0.2")), "local");
  EXPECT_EQ(Describe(MakeHost("127.255.255.254")), "local");
  EXPECT_EQ(Describe(MakeHost("::1")), "local");
  EXPECT_EQ(Describe(MakeHost("localhost")), "local");
  EXPECT_EQ(Describe(MakeHost("a.localhost")), "local");
  EXPECT_EQ(Describe(MakeHost("a.localhost", "direct")), "direct 127.0.0.1:7465");
}

TEST(TransportTest, TheHostsOwnTransportCountsMost) {
  EXPECT_EQ(Describe(MakeHost("127.0.0.2", "direct"), "local"), "direct 127.0.0.2:7465");
  EXPECT_EQ(Describe(MakeHost("127.0.0.2"), "direct"), "direct 127.0.0.2:7465");
  EXPECT_EQ(Describe(MakeHost("node1", "local"), "direct"), "local");
}

TEST(TransportTest, DirectAddresses) {
  v1::Host host = MakeHost("127.0.0.2", "direct");
  host.set_worker_port(9000);
  EXPECT_EQ(Describe(host), "direct 127.0.0.2:9000");
  EXPECT_EQ(Describe(MakeHost("::1", "direct")), "direct [::1]:7465");
  EXPECT_EQ(Describe(MakeHost("localhost", "direct")), "direct 127.0.0.1:7465");
  host = MakeHost("node1", "direct");
  host.set_addr("127.0.0.9");
  EXPECT_EQ(Describe(host), "direct 127.0.0.9:7465");
}

TEST(TransportTest, PlaintextStaysOnTheLoopback) {
  for (const char* name :
       {"10.0.0.1", "node1", "0.0.0.0", "126.0.0.1", "::2", "127.0.0.2.evil.org"}) {
    const auto endpoint = ResolveEndpoint(MakeHost(name, "direct"), "");
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    EXPECT_TRUE(endpoint->tls) << name;
    EXPECT_EQ(endpoint->address, name);
  }
  for (const char* name : {"127.0.0.2", "::1", "localhost"}) {
    EXPECT_FALSE(ResolveEndpoint(MakeHost(name, "direct"), "")->tls) << name;
  }
}

TEST(TransportTest, OtherHostsAreReachedBySsh) {
  EXPECT_EQ(Describe(MakeHost("node1")), "ssh node1");
  EXPECT_EQ(Describe(MakeHost("10.0.0.7")), "ssh 10.0.0.7");
  EXPECT_EQ(Describe(MakeHost("127.0.0.2", "ssh")), "ssh 127.0.0.2");
  EXPECT_EQ(Describe(MakeHost("127.0.0.2", "openssh")), "openssh 127.0.0.2");
}

TEST(TransportTest, AHostsTransportTakesItsWordsFromTheCommandLine) {
  const auto words = [](const v1::Host& host, const std::string& text) {
    const auto endpoint = ResolveEndpoint(host, text);
    EXPECT_TRUE(endpoint.ok()) << endpoint.status();
    return endpoint.ok() ? endpoint->words : std::vector<std::string>();
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(words(MakeHost("n", "openssh"), "openssh:-F 'my file'"), (Words{"-F", "my file"}));
  EXPECT_EQ(words(MakeHost("n"), "openssh:-F x"), (Words{"-F", "x"}));
  EXPECT_EQ(words(MakeHost("n", "openssh"), "command:docker exec -i {host}"), Words());
  EXPECT_EQ(words(MakeHost("n", "command"), "command:docker exec -i {host}"),
            (Words{"docker", "exec", "-i", "{host}"}));
  EXPECT_EQ(words(MakeHost("n", "local"), "command:docker exec -i {host}"), Words());
  const std::string both = "openssh:-F x\ncommand:docker exec -i {host}";
  EXPECT_EQ(words(MakeHost("n"), both), (Words{"-F", "x"}));
  EXPECT_EQ(words(MakeHost("n", "openssh"), both), (Words{"-F", "x"}));
  EXPECT_EQ(words(MakeHost("n", "command"), both), (Words{"docker", "exec", "-i", "{host}"}));
}

TEST(TransportTest, WhatATransportCanNotBe) {
  EXPECT_EQ(Describe(MakeHost("node1", "command")),
            "line 3: host node1: transport=command needs the program: --transport "
            "'command:PROGRAM ... {host} ...'");
  EXPECT_EQ(Describe(MakeHost("node1"), "ssh:-F config"),
            "line 3: host node1: transport 'ssh:-F config': -F config: write the whole path; the "
            "controller has a working folder of its own");
  EXPECT_EQ(Describe(MakeHost("node1"), "ssh:-v"),
            "line 3: host node1: transport 'ssh:-v': -v is not known (known: -F -o -i -J -l -p); "
            "for all options of your ssh use transport openssh");
  EXPECT_EQ(
      Describe(MakeHost("node1"), "command:docker exec"),
      "line 3: host node1: transport 'command:docker exec': no {host} in it: every host would "
      "lead to the same machine");
  EXPECT_EQ(Describe(MakeHost("node1"), "local:x"),
            "line 3: host node1: transport 'local:x' takes no words after ':'");
  EXPECT_EQ(Describe(MakeHost("node1"), "openssh\nopenssh:-J x"),
            "line 3: host node1: transport openssh is given twice");
  EXPECT_EQ(Describe(MakeHost("node1"), "openssh:-F 'x"),
            "line 3: host node1: transport 'openssh:-F 'x': a quote ' is not closed");
}

TEST(TransportTest, UnknownTransportAndPort) {
  EXPECT_EQ(Describe(MakeHost("127.0.0.2", "drect")),
            "line 3: host 127.0.0.2: unknown transport 'drect'; did you mean 'direct'? (known: "
            "local, direct, ssh, openssh, command)");
  v1::Host host = MakeHost("127.0.0.2", "direct");
  host.set_worker_port(0);
  EXPECT_EQ(Describe(host), "line 3: host 127.0.0.2: worker_port=0 is not in 1 to 65535");
}

}  // namespace
}  // namespace muster::nodes
