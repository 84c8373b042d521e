#include "common/tls/issue.h"

#include <openssl/pem.h>

#include "common/tls/certificate.h"
#include "common/tls/openssl.h"
#include "tests/tls/tls_testing.h"

namespace muster::tls {
namespace {

TEST(Issue, ACertificateSaysWhatWasAsked) {
  const KeyAndCertificate authority = TestAuthority();
  const Validity validity = Around(-1, 30);
  const std::string pem = TestIdentity(authority, Identity::Node("lab", "node1"), validity);
  const auto infos = ReadCertificates(pem);
  ASSERT_TRUE(infos.ok()) << infos.status();
  ASSERT_EQ(infos->size(), 1u);
  const CertificateInfo& info = infos->front();
  EXPECT_EQ(info.identity, Identity::Node("lab", "node1"));
  EXPECT_FALSE(info.is_authority);
  EXPECT_EQ(info.not_before_s, validity.not_before_s);
  EXPECT_EQ(info.not_after_s, validity.not_after_s);
  EXPECT_EQ(info.issuer_key, ReadCertificates(authority.certificate_pem)->front().own_key);
  EXPECT_TRUE(CheckKeyFits(pem, pem).ok());
}

TEST(Issue, EveryCertificateHasItsOwnSerial) {
  const KeyAndCertificate authority = TestAuthority();
  const std::string a = TestIdentity(authority, Identity::Node("lab", "a"));
  const std::string b = TestIdentity(authority, Identity::Node("lab", "a"));
  EXPECT_NE(ReadCertificates(a)->front().serial, ReadCertificates(b)->front().serial);
  EXPECT_FALSE(CheckKeyFits(a, b).ok());
}

TEST(Issue, NothingButTheKeyIsTakenFromARequest) {
  const KeyAndCertificate authority = TestAuthority();
  const std::string request = *MakeRequest(*MakeKey(), Identity::Node("lab", "node1"));
  // It asks for another host, or for the controller's role.
  EXPECT_FALSE(SignRequest(authority, request, Identity::Node("lab", "node2"), Around(-1, 1)).ok());
  EXPECT_FALSE(SignRequest(authority, request, Identity::Controller("lab"), Around(-1, 1)).ok());
}

TEST(Issue, AWeakKeyGetsNoCertificate) {
  for (const auto& [bits, good] : {std::pair{1024, false}, std::pair{2048, true}}) {
    const KeyPtr key(EVP_RSA_gen(static_cast<unsigned>(bits)));
    const BioPtr out(BIO_new(BIO_s_mem()));
    ASSERT_EQ(PEM_write_bio_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr),
              1);
    const Identity identity = Identity::Node("lab", "n1");
    const auto request = MakeRequest(TextOf(out.get()), identity);
    ASSERT_TRUE(request.ok()) << request.status();
    const auto pem = SignRequest(TestAuthority(), *request, identity, Around(-1, 1));
    EXPECT_EQ(pem.ok(), good) << pem.status();
    if (good) continue;
    EXPECT_THAT(std::string(pem.status().message()), testing::HasSubstr("its key is too weak"));
  }
}

TEST(Issue, WhoHasSignedIsSeenByTheSignature) {
  const KeyAndCertificate one = TestAuthority();
  const KeyAndCertificate two = TestAuthority();
  const std::string pem = TestIdentity(one, Identity::Node("lab", "n1"));
  EXPECT_TRUE(CheckSigned(pem, one.certificate_pem).ok());
  EXPECT_TRUE(CheckSigned(pem, two.certificate_pem + one.certificate_pem).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckSigned(pem, two.certificate_pem)));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckSigned(pem, "")));
}

TEST(Issue, ADamagedRequestIsRefused) {
  const KeyAndCertificate authority = TestAuthority();
  const Identity node = Identity::Node("lab", "node1");
  const std::string request = *MakeRequest(*MakeKey(), node);
  // Any flipped bit of the body breaks its encoding or its signature.
  for (size_t at = request.find('\n') + 1; at < request.size() - 40; at += 7) {
    std::string damaged = request;
    damaged[at] = damaged[at] == 'A' ? 'B' : 'A';
    if (damaged == request) continue;
    const auto pem = SignRequest(authority, damaged, node, Around(-1, 1));
    EXPECT_FALSE(pem.ok()) << at;
  }
  EXPECT_FALSE(SignRequest(authority, "", node, Around(-1, 1)).ok());
  EXPECT_FALSE(SignRequest(authority, std::string(100'000, 'A'), node, Around(-1, 1)).ok());
}

TEST(Issue, AnEncryptedKeyIsAnErrorNotAQuestion) {
  const std::string key =
      "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIBvTBXBgkqhkiG9w0BBQ0wSjApBgkq\n"
      "-----END ENCRYPTED PRIVATE KEY-----\n";
  EXPECT_FALSE(MakeRequest(key, Identity::Node("lab", "a")).ok());
}

TEST(CheckTime, SaysSinceWhenAndByHowMuch) {
  CertificateInfo info;
  info.not_before_s = 1'800'000'000;
  info.not_after_s = info.not_before_s + 10 * kTestDay;
  EXPECT_TRUE(CheckTime(info, info.not_before_s, "c").ok());
  EXPECT_TRUE(CheckTime(info, info.not_after_s, "c").ok());
  const auto early = CheckTime(info, info.not_before_s - 400 * kTestDay, "certificate of host n");
  EXPECT_EQ(early.message(),
            "certificate of host n is not yet valid: it begins 2027-01-15 08:00 UTC, and the clock "
            "here says 2025-12-11 08:00 UTC, at least 400 days too early if the certificate is "
            "right");
  const auto late = CheckTime(info, info.not_after_s + 3 * 3600, "c");
  EXPECT_EQ(late.message(),
            "c expired 2027-01-25 08:00 UTC, 3 hours ago by the clock here (2027-01-25 11:00 UTC)");
}

}  // namespace
}  // namespace muster::tls
