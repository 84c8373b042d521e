#include "controller/store/secrets.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/store/temp_dir.h"

namespace muster::testing {
namespace {

v1::JobSpec WithSecret() {
  v1::JobSpec spec;
  auto& secret = *spec.add_secrets();
  secret.set_name("WANDB_API_KEY");
  secret.set_value("hunter2");
  return spec;
}

TEST(Secrets, MaskKeepsNames) {
  const auto masked = store::Mask(WithSecret());
  EXPECT_EQ(masked.secrets(0).name(), "WANDB_API_KEY");
  EXPECT_EQ(masked.secrets(0).value(), "***");
}

TEST(Secrets, AreRestoredUntilTheyAreRemoved) {
  TempDir dir;
  store::Secrets secrets(dir.path());
  ASSERT_TRUE(secrets.Put(7, WithSecret()).ok());
  auto spec = store::Mask(WithSecret());
  ASSERT_TRUE(secrets.Restore(7, spec).ok());
  EXPECT_EQ(spec.secrets(0).value(), "hunter2");

  struct stat status {};
  ASSERT_EQ(::stat((dir.path() + "/secrets/7").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat((dir.path() + "/secrets").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);

  secrets.Remove(7);
  EXPECT_EQ(secrets.Restore(7, spec).code(), absl::StatusCode::kNotFound);
}

TEST(Secrets, AJobWithoutSecretsHasNoFile) {
  TempDir dir;
  store::Secrets secrets(dir.path());
  v1::JobSpec spec;
  EXPECT_TRUE(secrets.Put(7, spec).ok());
  EXPECT_FALSE(std::filesystem::exists(dir.path() + "/secrets"));
  EXPECT_TRUE(secrets.Restore(7, spec).ok());
}

}  // namespace
}  // namespace muster::testing
