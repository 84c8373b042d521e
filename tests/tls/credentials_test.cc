#include "common/tls/credentials.h"

#include <atomic>
#include <thread>

#include "tests/tls/tls_testing.h"

namespace muster::tls {
namespace {

using testing::HasSubstr;

std::string Message(const std::shared_ptr<Credentials>& credentials) {
  return std::string(credentials->Get().status().message());
}

class CredentialsTest : public testing::Test {
 protected:
  const KeyAndCertificate authority_ = TestAuthority();
  const std::string node_ = TestIdentity(authority_, Identity::Node("lab", "n1"));
};

TEST_F(CredentialsTest, NewFilesCountAtTheNextLook) {
  TestFolder folder(node_, authority_.certificate_pem);
  const auto credentials = folder.As(Role::kNode);
  const auto first = credentials->Get();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*credentials->Get(), *first);  // not read again
  const std::string other = TestIdentity(authority_, Identity::Node("lab", "n1"));
  folder.Put(other, authority_.certificate_pem);
  const auto second = credentials->Get();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*second)->own.serial, ReadCertificates(other)->front().serial);
}

TEST_F(CredentialsTest, MissingFilesSayWhatMakesThem) {
  const TempDir empty;
  const auto node = std::make_shared<Credentials>(empty.path(), Role::kNode);
  EXPECT_TRUE(absl::IsNotFound(node->Get().status()));
  EXPECT_THAT(Message(node), HasSubstr(empty / "identity.pem"));
  EXPECT_THAT(Message(node), HasSubstr("muster cert push"));
  const auto controller = std::make_shared<Credentials>(empty.path(), Role::kController);
  EXPECT_THAT(Message(controller), HasSubstr("muster cert init"));
}

TEST_F(CredentialsTest, RefusesAKeyThatOthersCanRead) {
  TestFolder folder(node_, authority_.certificate_pem);
  const std::string path = folder.path() + "/identity.pem";
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  EXPECT_THAT(Message(folder.As(Role::kNode)), HasSubstr("chmod 600 " + path));
}

TEST_F(CredentialsTest, RefusesALink) {
  TestFolder folder(node_, authority_.certificate_pem);
  const std::string path = folder.path() + "/identity.pem";
  ASSERT_EQ(rename(path.c_str(), (path + ".real").c_str()), 0);
  ASSERT_EQ(symlink((path + ".real").c_str(), path.c_str()), 0);
  EXPECT_THAT(Message(folder.As(Role::kNode)), HasSubstr("symbolic link"));
}

TEST_F(CredentialsTest, RefusesAnotherUsersFile) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  TestFolder folder(node_, authority_.certificate_pem);
  ASSERT_EQ(chown((folder.path() + "/identity.pem").c_str(), 65534, 65534), 0);
  EXPECT_THAT(Message(folder.As(Role::kNode)), HasSubstr("belongs to uid 65534"));
}

TEST_F(CredentialsTest, RefusesFilesThatDoNotFitTogether) {
  const std::string other_key = *MakeKey();
  const std::string certificate = node_.substr(node_.find("-----BEGIN CERTIFICATE"));
  EXPECT_THAT(
      Message(TestFolder(other_key + certificate, authority_.certificate_pem).As(Role::kNode)),
      HasSubstr("another key"));
  EXPECT_THAT(Message(TestFolder(certificate, authority_.certificate_pem).As(Role::kNode)),
              HasSubstr("private key"));
  EXPECT_THAT(Message(TestFolder(node_, authority_.certificate_pem).As(Role::kController)),
              HasSubstr("another role"));
  EXPECT_THAT(Message(TestFolder(node_, TestAuthority("other").certificate_pem).As(Role::kNode)),
              HasSubstr("not of authority 'lab'"));
  EXPECT_THAT(Message(TestFolder(node_, node_).As(Role::kNode)), HasSubstr("trust.pem"));
  EXPECT_THAT(
      Message(TestFolder(node_, authority_.certificate_pem + "-----BEGIN CERTIFICATE-----\nx")
                  .As(Role::kNode)),
      HasSubstr("damaged"));
  EXPECT_THAT(Message(TestFolder(node_, std::string(2 << 20, 'x')).As(Role::kNode)),
              HasSubstr("larger than 1 MiB"));
}

TEST(WriteOwnFile, ReplacesAtOnceAndPrivately) {
  const TempDir dir;
  const std::string path = dir / "file";
  ASSERT_TRUE(WriteOwnFile(path, "one").ok());
  ASSERT_TRUE(WriteOwnFile(path, "two").ok());
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_EQ(*ReadOwnFile(path, true), "two");
  // No temporary file stays.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
  EXPECT_FALSE(WriteOwnFile(dir / "no/such", "x").ok());
}

class RootsFiles : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
    ASSERT_EQ(chown(dir_.path().c_str(), kUser, kUser), 0);
  }
  static uid_t OwnerOf(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
    return info.st_uid;
  }

  static constexpr uid_t kUser = 65534;
  const TempDir dir_;
};

TEST_F(RootsFiles, WhatRootMakesInAnothersFolderIsThatUsers) {
  const std::string folder = dir_ / "tls";
  for (int i = 0; i < 2; ++i) {
    const auto owner = MakeOwnFolder(folder + "/");  // made, then there
    ASSERT_TRUE(owner.ok()) << owner.status();
    EXPECT_EQ(*owner, kUser);
  }
  EXPECT_EQ(OwnerOf(folder), kUser);
  ASSERT_TRUE(WriteOwnFile(folder + "/key", "secret").ok());
  EXPECT_EQ(OwnerOf(folder + "/key"), kUser);
  // Root reads it where it knows whose it is, and else takes nobody's word.
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadOwnFile(folder + "/key", true).status()));
  EXPECT_EQ(*ReadOwnFile(folder + "/key", true, kUser), "secret");
  // Its own folders stay its own.
  ASSERT_EQ(chown(dir_.path().c_str(), 0, 0), 0);
  EXPECT_EQ(*MakeOwnFolder(dir_ / "mine"), 0u);
}

TEST_F(RootsFiles, ALinkInAnothersFolderLeadsRootNowhere) {
  const TempDir precious;
  ASSERT_EQ(symlink(precious.path().c_str(), (dir_ / "tls").c_str()), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(MakeOwnFolder(dir_ / "tls").status()));
  // The folder becomes a link between the look and the write, again and again.
  const std::string folder = dir_ / "real";
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(chown(folder.c_str(), kUser, kUser), 0);
  std::atomic<bool> stop{false};
  std::thread swapper([&] {
    while (!stop) {
      rename(folder.c_str(), (dir_ / "aside").c_str());
      (void)!symlink(precious.path().c_str(), folder.c_str());
      unlink(folder.c_str());
      rename((dir_ / "aside").c_str(), folder.c_str());
    }
  });
  for (int i = 0; i < 2'000; ++i) (void)WriteOwnFile(folder + "/key", "secret");
  stop = true;
  swapper.join();
  EXPECT_TRUE(std::filesystem::is_empty(precious.path()));
}

TEST(ReadOwnFile, AFifoDoesNotHoldUsUp) {
  const TempDir dir;
  ASSERT_EQ(mkfifo((dir / "fifo").c_str(), 0600), 0);
  EXPECT_FALSE(ReadOwnFile(dir / "fifo", true).ok());
}

}  // namespace
}  // namespace muster::tls
