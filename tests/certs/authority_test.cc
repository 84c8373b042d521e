#include "controller/certs/authority.h"

#include "tests/tls/tls_testing.h"

namespace muster::certs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tls::Identity;

class AuthorityTest : public testing::Test {
 protected:
  absl::StatusOr<Authority> Open() { return Authority::Open(folder_, {}, clock_); }
  absl::StatusOr<Authority> Init(const std::string& name = "lab") {
    return Authority::Init(folder_, name, {}, clock_);
  }
  static std::string Request(const std::string& host) {
    return *tls::MakeRequest(*tls::MakeKey(), Identity::Node("lab", host));
  }
  bool ControllerIsOfTheSigner(const Authority& authority) {
    return authority.Controller()->issuer_key == authority.info().own_key;
  }

  const tls::TempDir dir_;
  const std::string folder_ = dir_ / "tls";
  FakeClock clock_;
};

TEST_F(AuthorityTest, InitMakesAllThatAControllerNeeds) {
  ASSERT_TRUE(Init().ok());
  EXPECT_TRUE(tls::Credentials(folder_, tls::Role::kController).Get().ok());
  struct stat info {};
  for (const char* name : {"ca.pem", "identity.pem", "trust.pem"}) {
    ASSERT_EQ(stat((folder_ + "/" + name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_mode & 07777, 0600u) << name;
  }
  ASSERT_EQ(stat(folder_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
}

TEST_F(AuthorityTest, ASecondInitChangesNothing) {
  ASSERT_TRUE(Init().ok());
  const std::string before = *tls::ReadOwnFile(folder_ + "/ca.pem", true);
  const auto again = Init("other");
  EXPECT_TRUE(absl::IsAlreadyExists(again.status())) << again.status();
  EXPECT_EQ(*tls::ReadOwnFile(folder_ + "/ca.pem", true), before);
}

TEST_F(AuthorityTest, NamesAreChecked) {
  EXPECT_FALSE(Init("a/b").ok());
  auto authority = *Init();
  for (const char* host : {"..", "../x", "a/b", ""}) {
    EXPECT_FALSE(authority.Issue(host, Request("a")).ok()) << host;
    EXPECT_FALSE(authority.Forget(host).ok()) << host;
  }
}

TEST_F(AuthorityTest, OneAtATime) {
  const auto first = Init();
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(std::string(Open().status().message()), HasSubstr("another `muster cert` works"));
}

TEST_F(AuthorityTest, IssuedCertificatesAreRemembered) {
  {
    auto authority = *Init();
    ASSERT_TRUE(authority.Issue("n1", Request("n1")).ok());
    ASSERT_TRUE(authority.Issue("fe80::2", Request("fe80::2")).ok());
  }
  auto authority = *Open();
  auto issued = *authority.Issued();
  ASSERT_EQ(issued.size(), 2u);
  const int64_t now = clock_.RealtimeNs() / 1'000'000'000;
  EXPECT_EQ(issued.at("n1").not_after_s, now + 365 * 86400);
  EXPECT_LT(issued.at("n1").not_before_s, now);
  EXPECT_TRUE(authority.Forget("n1").ok());
  EXPECT_EQ(authority.Issued()->size(), 1u);
  EXPECT_TRUE(absl::IsNotFound(authority.Forget("n1")));
}

TEST_F(AuthorityTest, ARotationGoesStepByStep) {
  auto authority = *Init();
  ASSERT_TRUE(authority.Issue("n1", Request("n1")).ok());
  const std::string old_key = authority.info().own_key;

  ASSERT_TRUE(authority.BeginRotation().ok());
  EXPECT_NE(authority.info().own_key, old_key);
  EXPECT_EQ(tls::ReadCertificates(authority.trust_pem())->size(), 2u);
  // Hosts that know the old authority alone still let the controller in.
  EXPECT_FALSE(ControllerIsOfTheSigner(authority));
  EXPECT_THAT(*authority.HostsOfPrevious(), ElementsAre("n1"));
  EXPECT_FALSE(authority.BeginRotation().ok());
  EXPECT_THAT(std::string(authority.FinishRotation().message()), HasSubstr("n1"));

  ASSERT_TRUE(authority.Issue("n1", Request("n1")).ok());
  EXPECT_TRUE(authority.HostsOfPrevious()->empty());
  ASSERT_TRUE(authority.RenewController().ok());
  ASSERT_TRUE(authority.FinishRotation().ok());
  EXPECT_EQ(tls::ReadCertificates(authority.trust_pem())->size(), 1u);
  EXPECT_FALSE(authority.rotating());
  EXPECT_TRUE(ControllerIsOfTheSigner(authority));
  EXPECT_TRUE(tls::Credentials(folder_, tls::Role::kController).Get().ok());
}

TEST_F(AuthorityTest, ARotationSurvivesTheEndOfTheProgram) {
  { ASSERT_TRUE(Init()->BeginRotation().ok()); }
  const auto authority = Open();
  ASSERT_TRUE(authority.ok()) << authority.status();
  EXPECT_TRUE(authority->rotating());
  EXPECT_EQ(tls::ReadCertificates(authority->trust_pem())->size(), 2u);
}

TEST_F(AuthorityTest, WithoutAnAuthoritySaysWhatMakesOne) {
  EXPECT_THAT(std::string(Open().status().message()), HasSubstr("muster cert init"));
}

}  // namespace
}  // namespace muster::certs
