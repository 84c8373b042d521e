#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "controller/nodes/ssh/known_hosts.h"
#include "tests/nodes/ssh/openssh.h"

namespace muster::nodes::ssh {
namespace {

TEST(KnownHostsOracleTest, SshKeygenFindsOursAndWeFindIts) {
  if (!Output("ssh -G localhost")) GTEST_SKIP() << "no OpenSSH here";
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/known";
  for (const char* type : {"ed25519", "ecdsa", "rsa"}) {
    const std::string key = folder.path() + "/" + type;
    ASSERT_TRUE(Output("ssh-keygen -q -N '' -t " + std::string(type) + " -f " + key));
    std::ifstream in(key + ".pub");
    std::string name;
    std::string base64;
    in >> name >> base64;
    const PublicKey ours = ParsePublicKey(name, base64);
    ASSERT_EQ(ours.type, name);
    const auto listed = Output("ssh-keygen -l -f " + key + ".pub");
    ASSERT_TRUE(listed);
    EXPECT_NE(listed->find(" " + ours.Fingerprint() + " "), std::string::npos) << *listed;

    // Ours, found by theirs; theirs, hashed, found by us.
    const std::string host = "[node1.example]:2222";
    folder.Write("known", KnownHostsLine(host, ours, "abcdefghijklmnopqrst") +
                              KnownHostsLine("plain", ours, ""));
    EXPECT_TRUE(Output("ssh-keygen -F '" + host + "' -f " + file));
    EXPECT_TRUE(Output("ssh-keygen -F plain -f " + file));
    EXPECT_FALSE(Output("ssh-keygen -F node1.example -f " + file));
    ASSERT_TRUE(Output("ssh-keygen -H -f " + file));
    std::ifstream hashed(file);
    std::stringstream text;
    text << hashed.rdbuf();
    EXPECT_EQ(text.str().find("plain"), std::string::npos);
    EXPECT_EQ(FindKnownKeys(text.str(), file, "plain").size(), 1);
    EXPECT_EQ(FindKnownKeys(text.str(), file, host).size(), 1);
    EXPECT_EQ(FindKnownKeys(text.str(), file, "other").size(), 0);
    fs::remove(file + ".old");
  }
}

}  // namespace
}  // namespace muster::nodes::ssh
