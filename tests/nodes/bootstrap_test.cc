#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/sha256.h"
#include "common/version.h"
#include "controller/nodes/dial_command.h"
#include "controller/nodes/remote_command.h"

// The bootstrap script on this machine, in each shell that a host's /bin/sh may be. What is pushed
// are scripts that stand for the worker's programs.

namespace muster::nodes {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

std::string Read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void Write(const fs::path& path, const std::string& text, mode_t mode = 0755) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  chmod(path.c_str(), mode);
}

// The shells, and the programs that they find.
struct Kind {
  std::string name;
  std::vector<std::string> shell;
  std::vector<std::string> tools = {"gzip", "sha256sum"};  // beyond what every host has
};

void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.name;
}

class BootstrapTest : public testing::TestWithParam<Kind> {
 protected:
  BootstrapTest() {
    std::string folder = "/tmp/muster_bootstrap_XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    root_ = folder;
    // Its checksum is what the programs' own would be.
    shim_ = Incompressible(100'000);
    musterd_ =
        "#!/bin/sh\n"
        // The controller's own path must not count as an installed worker.
        "case $1:$0 in --checksum:*/c/bin/musterd) exit 2 ;; --checksum:*)\n"
        "/usr/bin/cat \"${0%musterd}muster-shim\" \"$0\" | /usr/bin/sha256sum | /usr/bin/cut -c "
        "-64\n"
        "exit ;; esac\n"
        "echo \"$* from $0, umask $(umask)\" >> " +
        root_.string() + "/ran\necho 'MUSTER-BRIDGE protocol=" + std::to_string(kProtocol) +
        " version=" + kVersion + "'\nexec cat\n" + Letters(300'000);
    Write(root_ / "c/bin/musterd", musterd_);
    Write(root_ / "c/bin/muster-shim", shim_);
    programs_ = std::make_shared<WorkerPrograms>((root_ / "c/bin/musterd").string());
    state_ = root_ / "state";
    // PATH of the host: nothing but what the script says that it needs.
    const fs::path bin = root_ / "path";
    std::vector<std::string> tools = GetParam().tools;
    for (const char* tool :
         {"sh", "id", "uname", "ls", "mkdir", "df", "mktemp", "chmod", "rm", "head", "cat", "mv"}) {
      tools.emplace_back(tool);
    }
    fs::create_directories(bin);
    for (const std::string& tool : tools) {
      const bool busybox = GetParam().name == "busybox";
      const fs::path program = busybox ? "/usr/bin/busybox" : fs::path("/usr/bin") / tool;
      fs::create_symlink(fs::exists(program) ? program : fs::path("/bin") / tool, bin / tool);
    }
  }
  ~BootstrapTest() override {
    std::error_code error;
    fs::remove_all(root_, error);
  }
  void SetUp() override {
    if (access(GetParam().shell[0].c_str(), X_OK) != 0) {
      GTEST_SKIP() << GetParam().shell[0] << " is not installed";
    }
  }

  static std::string Incompressible(size_t size) {
    std::mt19937 random(1);
    std::string out(size, '\0');
    for (char& c : out) c = static_cast<char>(random());
    return out;
  }

  // A comment that packs badly.
  static std::string Letters(size_t size) {
    std::string out = Incompressible(size);
    for (char& c : out) c = static_cast<char>('A' + (c & 31));
    return "#" + out + "\n";
  }

  std::string Sum() const { return ToHex(Sha256(shim_ + musterd_)); }
  fs::path Installed() const { return state_ / "bin" / Sum(); }

  // The host's /bin/sh, with `environment` ("A=b") before it.
  absl::StatusOr<Connection> Dial(const std::vector<std::string>& environment = {},
                                  std::vector<std::string> around = {}) {
    std::vector<std::string> words = {"env", "-i", "PATH=" + (root_ / "path").string(),
                                      "MUSTER_STATE=" + state_.string()};
    words.insert(words.end(), environment.begin(), environment.end());
    words.insert(words.end(), around.begin(), around.end());
    words.insert(words.end(), GetParam().shell.begin(), GetParam().shell.end());
    const std::vector<std::string> remote = RemoteWords();
    words.insert(words.end(), remote.begin() + 1, remote.end());
    pushes_ = 0;
    return DialCommand(words,
                       {.timeout = milliseconds(20'000),
                        .name = "n-1",
                        .programs = programs_,
                        .on_push = [this] { ++pushes_; }},
                       stop_);
  }

  // The same, and the stream works both ways.
  void ExpectReached(const std::vector<std::string>& environment = {}) {
    const auto connection = Dial(environment);
    ASSERT_TRUE(connection.ok()) << connection.status();
    ASSERT_EQ(write(connection->fd.get(), "hello\n", 6), 6);
    std::string text(6, '\0');
    for (size_t have = 0; have < text.size();) {
      const ssize_t n = read(connection->fd.get(), text.data() + have, text.size() - have);
      ASSERT_NE(n, 0);
      if (n > 0) have += static_cast<size_t>(n);
      if (n < 0) std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_EQ(text, "hello\n");
  }

  std::vector<std::string> InBin() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(state_ / "bin")) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  fs::path root_;
  fs::path state_;
  std::string shim_;
  std::string musterd_;
  std::shared_ptr<WorkerPrograms> programs_;
  StopSignal stop_;
  int pushes_ = 0;
};

TEST_P(BootstrapTest, PushedOnceAndFoundAfterwards) {
  ExpectReached();
  EXPECT_EQ(pushes_, 1);
  EXPECT_TRUE(Read(Installed() / "musterd") == musterd_);
  EXPECT_TRUE(Read(Installed() / "muster-shim") == shim_);
  EXPECT_THAT(InBin(), testing::ElementsAre(Sum()));
  for (const fs::path& path : {state_ / "bin", Installed(), Installed() / "musterd"}) {
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700) << path;
  }
  ExpectReached();
  EXPECT_EQ(pushes_, 0);
  const std::string ran =
      "bridge --name n-1 from " + (Installed() / "musterd").string() + ", umask 0022\n";
  EXPECT_EQ(Read(root_ / "ran"), ran + ran);
}

TEST_P(BootstrapTest, WhatIsNotWholeIsPushedAgain) {
  ExpectReached();
  Write(Installed() / "musterd", "#!/bin/sh\nexit 1\n");  // as after a power cut
  ExpectReached();
  EXPECT_EQ(pushes_, 1);
  EXPECT_TRUE(Read(Installed() / "musterd") == musterd_);
  fs::remove(Installed() / "muster-shim");
  ExpectReached();
  EXPECT_EQ(pushes_, 1);
}

TEST_P(BootstrapTest, AnInstalledWorkerOfThisBuildIsUsed) {
  Write(root_ / "path/musterd", musterd_);
  Write(root_ / "path/muster-shim", shim_);
  ExpectReached();
  EXPECT_EQ(pushes_, 0);
  EXPECT_THAT(Read(root_ / "ran"), HasSubstr((root_ / "path/musterd").string()));
  Write(root_ / "path/musterd", "#!/bin/sh\necho 0123\n");  // another build
  ExpectReached();
  EXPECT_EQ(pushes_, 1);
}

TEST_P(BootstrapTest, OthersFoldersAreNotTaken) {
  const fs::path elsewhere = root_ / "elsewhere";
  fs::create_directories(elsewhere);
  fs::create_symlink(elsewhere, state_);
  const std::string home = "HOME=" + root_.string() + "/home";
  // The rest of the candidates is this machine's; one of them takes it.
  ExpectReached({home});
  EXPECT_TRUE(fs::is_empty(elsewhere));
  fs::remove(state_);
  fs::create_directories(state_);
  chmod(state_.c_str(), 0777);
  ExpectReached({home});
  EXPECT_TRUE(fs::is_empty(state_));
  if (geteuid() == 0) {
    chmod(state_.c_str(), 0755);
    ASSERT_EQ(chown(state_.c_str(), 12345, 12345), 0);
    ExpectReached({home});
    EXPECT_TRUE(fs::is_empty(state_));
  }
  const fs::path shared = "/var/tmp/muster-" + std::to_string(geteuid()) + "/bin/" + Sum();
  EXPECT_TRUE(fs::exists(shared / "musterd"));
  fs::remove_all(shared);
}

TEST_P(BootstrapTest, AnUnknownArchitecture) {
  fs::remove(root_ / "path/uname");
  Write(root_ / "path/uname", "#!/bin/sh\necho ppc64le\n");
  const auto connection = Dial();
  EXPECT_TRUE(absl::IsFailedPrecondition(connection.status())) << connection.status();
  EXPECT_THAT(connection.status().ToString(),
              AllOf(HasSubstr("no worker for ppc64le"),
                    HasSubstr((root_ / "c/libexec/muster/ppc64le").string())));
  EXPECT_EQ(pushes_, 0);

  Write(root_ / "c/libexec/muster/ppc64le/musterd", musterd_ + "# ppc\n");
  Write(root_ / "c/libexec/muster/ppc64le/muster-shim", shim_);
  // The controller need not be started anew for it, nor when it is replaced.
  ExpectReached();
  EXPECT_EQ(pushes_, 1);
  EXPECT_TRUE(Read(state_ / "bin" / ToHex(Sha256(shim_ + musterd_ + "# ppc\n")) / "musterd") ==
              musterd_ + "# ppc\n");
}

TEST_P(BootstrapTest, ProgramsOfAnotherArchitectureMayBeReplaced) {
  fs::remove(root_ / "path/uname");
  Write(root_ / "path/uname", "#!/bin/sh\necho ppc64le\n");
  const fs::path folder = root_ / "c/libexec/muster/ppc64le";
  Write(folder / "muster-shim", shim_);
  for (const std::string build : {"# one\n", "# two\n"}) {
    Write(folder / "musterd.new", musterd_ + build);
    fs::rename(folder / "musterd.new", folder / "musterd");
    ExpectReached();
    EXPECT_EQ(pushes_, 1);
    EXPECT_TRUE(fs::exists(state_ / "bin" / ToHex(Sha256(shim_ + musterd_ + build)) / "musterd"));
  }
  fs::remove(folder / "musterd");
  EXPECT_THAT(Dial().status().ToString(), HasSubstr("no worker for ppc64le"));
}

TEST_P(BootstrapTest, ProgramsThatChangedUnderTheController) {
  programs_->Builds();
  Write(root_ / "c/bin/musterd", musterd_ + "# new\n");
  const auto connection = Dial();
  EXPECT_TRUE(absl::IsFailedPrecondition(connection.status())) << connection.status();
  EXPECT_THAT(connection.status().ToString(), HasSubstr("has changed since this controller"));
  EXPECT_FALSE(fs::exists(Installed()));
}

TEST_P(BootstrapTest, TwoAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> reached = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { reached += Dial().ok() ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(reached, 4);
  EXPECT_TRUE(Read(Installed() / "musterd") == musterd_);
  EXPECT_THAT(InBin(), testing::ElementsAre(Sum()));
}

// A carrier that passes on only the first bytes, and then ends as a broken connection does.
TEST_P(BootstrapTest, ACutPushLeavesNothing) {
  for (const int bytes : {8'000, 60'000, 180'000}) {
    const auto connection =
        Dial({}, {"/bin/sh", "-c",
                  "/usr/bin/dd bs=1 count=" + std::to_string(bytes) +
                      " 2>/dev/null | \"$@\"; echo 'Connection reset by peer' >&2; exit 255",
                  "sh"});
    EXPECT_TRUE(absl::IsUnavailable(connection.status())) << connection.status();
    EXPECT_THAT(connection.status().ToString(),
                AllOf(HasSubstr("while the worker was pushed"), HasSubstr("reset by peer")));
    EXPECT_FALSE(fs::exists(Installed() / "musterd"));
    for (int i = 0; i < 1000 && !InBin().empty(); ++i) {
      std::this_thread::sleep_for(milliseconds(10));
    }
    EXPECT_TRUE(InBin().empty());
  }
  ExpectReached();
}

TEST_P(BootstrapTest, BytesThatChangedOnTheWay) {
  // The stand-in for gzip and cat, whichever unpacks.
  fs::remove(root_ / "path/gzip");
  Write(root_ / "path/gzip", "#!/bin/sh\n/usr/bin/gzip \"$@\" | tr a b\n");
  fs::create_symlink("/usr/bin/tr", root_ / "path/tr");
  const auto connection = Dial();
  EXPECT_TRUE(absl::IsFailedPrecondition(connection.status())) << connection.status();
  EXPECT_THAT(connection.status().ToString(), HasSubstr("is not what was sent"));
  EXPECT_TRUE(InBin().empty());
}

INSTANTIATE_TEST_SUITE_P(Shells, BootstrapTest,
                         testing::Values(Kind{"dash", {"/bin/dash"}}, Kind{"bash", {"/bin/bash"}},
                                         Kind{"bare", {"/bin/dash"}, {}},
                                         Kind{"busybox", {"/usr/bin/busybox", "sh"}}),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace muster::nodes
