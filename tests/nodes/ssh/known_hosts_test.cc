#include "controller/nodes/ssh/known_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::nodes::ssh {
namespace {

using Kind = HostKeyVerdict::Kind;
using testing::HasSubstr;

// Two keys of one type.
constexpr char kEd[] = "AAAAC3NzaC1lZDI1NTE5AAAAIHDmJ0G6lCJVMcqR6WFxXj3kEwdnqOyo7M9l2s4d+FfN";
constexpr char kEd2[] = "AAAAC3NzaC1lZDI1NTE5AAAAIHDmJ0G6lCJVMcqR6WFxXj3kEwdnqOyo7M9l2s4d+FfO";

PublicKey Ed(const char* base64 = kEd) {
  return ParsePublicKey("ssh-ed25519", base64);
}

std::vector<KnownKey> Find(const std::string& text, const std::string& name) {
  return FindKnownKeys(text, "kh", name);
}

TEST(KnownHostsTest, NamesWildcardsPortsAndNegation) {
  const std::string key = std::string(" ssh-ed25519 ") + kEd + " comment\n";
  EXPECT_EQ(Find("node1,10.0.0.1" + key, "node1").size(), 1);
  EXPECT_EQ(Find("node1,10.0.0.1" + key, "10.0.0.1").size(), 1);
  EXPECT_EQ(Find("NODE1" + key, "node1").size(), 1);
  EXPECT_EQ(Find("node*,!node2" + key, "node1").size(), 1);
  EXPECT_EQ(Find("node*,!node2" + key, "node2").size(), 0);
  EXPECT_EQ(Find("[node1]:2222" + key, "[node1]:2222").size(), 1);
  EXPECT_EQ(Find("[node1]:2222" + key, "node1").size(), 0);
  EXPECT_EQ(Find("fd00::1" + key, "fd00::1").size(), 1);
}

TEST(KnownHostsTest, HashedNames) {
  const std::string salt = "01234567890123456789";
  const std::string line = KnownHostsLine("[node1]:2222", Ed(), salt);
  EXPECT_EQ(line.substr(0, 3), "|1|");
  EXPECT_EQ(Find(line, "[node1]:2222").size(), 1);
  EXPECT_EQ(Find(line, "node1").size(), 0);
  EXPECT_EQ(Find("|1|x ssh-ed25519 " + std::string(kEd), "node1").size(), 0);
  EXPECT_EQ(Find("|2|a|b ssh-ed25519 " + std::string(kEd), "node1").size(), 0);
}

TEST(KnownHostsTest, LinesThatCanNotBeReadArePassedOver) {
  const std::string good = std::string("n ssh-ed25519 ") + kEd;
  const auto found = Find("# n x\n\n  \nn\nn ssh-ed25519\nn ssh-ed25519 !!!\nn ssh-rsa " +
                              std::string(kEd) + "\nn 1024 35 12345\n@odd " + good + "\r\n" + good,
                          "n");
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].Place(), "kh:10");
}

TEST(KnownHostsTest, Verdicts) {
  const std::string known = std::string("n ssh-ed25519 ") + kEd + "\n";
  EXPECT_EQ(JudgeHostKey(Find(known, "n"), Ed()).kind, Kind::kKnown);
  EXPECT_EQ(JudgeHostKey(Find(known, "m"), Ed()).kind, Kind::kNew);
  const auto keys = Find(known, "n");
  const HostKeyVerdict changed = JudgeHostKey(keys, Ed(kEd2));
  EXPECT_EQ(changed.kind, Kind::kChanged);
  EXPECT_EQ(changed.known->line, 1);
  // A second key for the same host is as good.
  EXPECT_EQ(JudgeHostKey(Find(std::string("n ssh-ed25519 ") + kEd2 + "\n" + known, "n"), Ed()).kind,
            Kind::kKnown);
  EXPECT_EQ(JudgeHostKey(Find(known + "@revoked * ssh-ed25519 " + kEd + "\n", "n"), Ed()).kind,
            Kind::kRevoked);
  EXPECT_EQ(JudgeHostKey(Find(std::string("@cert-authority n ssh-ed25519 ") + kEd, "n"), Ed()).kind,
            Kind::kNew);
}

TEST(KnownHostsTest, AskForTheKeyThatIsKnown) {
  EXPECT_EQ(PreferKnownTypes({}),
            "ssh-ed25519,ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521,"
            "rsa-sha2-512,rsa-sha2-256");
  KnownKey rsa;
  rsa.key.type = "ssh-rsa";
  KnownKey authority;
  authority.marker = KnownKey::Marker::kAuthority;
  authority.key.type = "ecdsa-sha2-nistp521";
  EXPECT_THAT(PreferKnownTypes({authority, rsa}),
              testing::StartsWith("rsa-sha2-512,rsa-sha2-256,ssh-ed25519,"));
}

TEST(KnownHostsTest, KeysMustBeWhatTheySay) {
  EXPECT_EQ(ParsePublicKey("ssh-rsa", kEd).type, "");
  EXPECT_EQ(ParsePublicKey("ssh-ed25519", "AAAA").type, "");
  EXPECT_EQ(ParsePublicKey("", "").type, "");
  EXPECT_EQ(Ed().type, "ssh-ed25519");
  EXPECT_THAT(Ed().Fingerprint(), HasSubstr("SHA256:"));
}

}  // namespace
}  // namespace muster::nodes::ssh
