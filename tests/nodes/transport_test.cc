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
    ASSERT_TRUE(absl::IsInvalidArgument(endpoint.status())) << name;
    EXPECT_NE(endpoint.status().message().find("line 3: host " + std::string(name)),
              std::string::npos);
    EXPECT_NE(endpoint.status().message().find("without TLS"), std::string::npos);
  }
}

TEST(TransportTest, SshIsRefusedWithTheWayOut) {
  for (const auto& host : {MakeHost("node1"), MakeHost("127.0.0.2", "ssh")}) {
    const auto endpoint = ResolveEndpoint(host, "");
    ASSERT_TRUE(absl::IsInvalidArgument(endpoint.status()));
    EXPECT_NE(endpoint.status().message().find("transport=local"), std::string::npos);
    EXPECT_NE(endpoint.status().message().find("transport=direct"), std::string::npos);
    EXPECT_NE(endpoint.status().message().find("line 3"), std::string::npos);
  }
}

TEST(TransportTest, UnknownTransportAndPort) {
  EXPECT_EQ(Describe(MakeHost("127.0.0.2", "drect")),
            "line 3: host 127.0.0.2: unknown transport 'drect'; did you mean 'direct'? (known: "
            "local, direct)");
  v1::Host host = MakeHost("127.0.0.2", "direct");
  host.set_worker_port(0);
  EXPECT_EQ(Describe(host), "line 3: host 127.0.0.2: worker_port=0 is not in 1 to 65535");
}

}  // namespace
}  // namespace muster::nodes
