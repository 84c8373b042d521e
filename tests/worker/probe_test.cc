#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/unique_fd.h"
#include "tests/worker/worker_testing.h"
#include "worker/facts/answer_probe.h"
#include "worker/facts/file_sum.h"
#include "worker/facts/files.h"
#include "worker/facts/kernel_log.h"
#include "worker/facts/python.h"
#include "worker/facts/questions.h"
#include "worker/facts/rdma.h"

// The single probes, over files of the test's own.

namespace muster::facts {
namespace {

using muster::testing::TempDir;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

steady_clock::time_point Soon(int64_t ms = 20'000) {
  return steady_clock::now() + milliseconds(ms);
}

void Write(const std::string& path, const std::string& text, mode_t mode = 0644) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
  chmod(path.c_str(), mode);
}

const Environment kPath = {{"PATH", "/usr/bin:/bin"}};

TEST(Questions, AnswersComeInOrderAndALateOneIsReplaced) {
  Questions questions;
  std::string text;
  questions.Ask(
      [&text]() -> Questions::Answer {
        usleep(20'000);
        return [&text] { text += "a"; };
      },
      [&text] { text += "late"; });
  // Never answers; its thread is left behind.
  questions.Ask(
      []() -> Questions::Answer {
        pause();
        return nullptr;
      },
      [&text] { text += "b?"; });
  questions.Ask([&text]() -> Questions::Answer { return [&text] { text += "c"; }; },
                [&text] { text += "late"; });
  questions.Collect(Soon(500));
  EXPECT_EQ(text, "ab?c");
}

TEST(RunTool, OutputAndExitCode) {
  const auto output = RunTool({"sh", "-c", "echo out $WORD; echo err >&2; exit 3"},
                              {{"PATH", "/usr/bin:/bin"}, {"WORD", "said"}}, Soon());
  EXPECT_EQ(output.exit_code, 3);
  EXPECT_EQ(output.out, "out said\n");
  EXPECT_EQ(output.err, "err\n");
  EXPECT_THAT(output.failure, IsEmpty());
}

TEST(RunTool, OneThatHangsIsEnded) {
  const auto output = RunTool({"sleep", "1000"}, kPath, Soon(200));
  EXPECT_EQ(output.failure, "no answer within the time limit");
  EXPECT_EQ(output.exit_code, -1);
}

TEST(RunTool, OneThatWritesWithoutEndIsEndedToo) {
  const auto output = RunTool({"yes"}, kPath, Soon(200));
  EXPECT_EQ(output.failure, "no answer within the time limit");
  EXPECT_THAT(output.out, StartsWith("y\ny\n"));
}

TEST(RunTool, AChildThatKeepsTheOutputOpenIsNotWaitedFor) {
  const auto output = RunTool({"sh", "-c", "sleep 1000 & echo $!"}, kPath, Soon());
  EXPECT_THAT(output.failure, IsEmpty());
  EXPECT_EQ(output.exit_code, 0);
  const int child = std::atoi(output.out.c_str());
  ASSERT_GT(child, 1);
  EXPECT_EQ(kill(child, SIGKILL), 0) << "it is left to the group's end";
}

TEST(RunTool, OneThatIsNotThere) {
  const auto output = RunTool({"no-such-tool"}, kPath, Soon());
  EXPECT_FALSE(output.found);
  EXPECT_EQ(output.failure, "no-such-tool was not found");
}

TEST(FileSum, WholeAndSpread) {
  const TempDir temp;
  const auto sum = [&](const std::string& text, uint64_t whole) {
    Write(temp.path() + "/f", text);
    const UniqueFd fd(open((temp.path() + "/f").c_str(), O_RDONLY));
    return FileSum(fd.get(), text.size(), whole);
  };
  // sha256("abc"), FIPS 180-2.
  EXPECT_EQ(sum("abc", 1), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  std::string large(8 << 20, 'x');
  const std::string before = sum(large, 0);
  EXPECT_THAT(before, SizeIs(64));
  for (const size_t at : {size_t{0}, large.size() - 1}) {
    large[at] = 'y';
    EXPECT_NE(sum(large, 0), before) << at;
    large[at] = 'x';
  }
  large[large.size() / 2 - 100'000] = 'y';
  EXPECT_NE(sum(large, large.size()), before);
}

TEST(Files, ProgramsAreFoundAsARankWill) {
  const TempDir temp;
  Write(temp.path() + "/bin/tool", "", 0755);
  Write(temp.path() + "/plain", "", 0644);
  const Environment mine = {{"PATH", "/nowhere:" + temp.path() + "/bin"}};
  EXPECT_EQ(ResolveProgram("tool", "/", mine).path, temp.path() + "/bin/tool");
  EXPECT_EQ(ResolveProgram("bin/tool", temp.path(), mine).path, temp.path() + "/bin/tool");
  EXPECT_THAT(ResolveProgram("tol", "/", mine).error,
              HasSubstr("program tol in PATH=/nowhere:" + temp.path() + "/bin: No such file"));
  EXPECT_THAT(ResolveProgram("./plain", temp.path(), mine).error, HasSubstr("chmod +x"));
  EXPECT_THAT(ResolveProgram("./bin", temp.path(), mine).error, HasSubstr("it is a folder"));
}

TEST(Files, FactsOfFilesAndFolders) {
  const TempDir temp;
  Write(temp.path() + "/data.bin", "0123456789");
  const auto file = LookAtFile(temp.path() + "/data.bin", 1 << 20);
  EXPECT_EQ(file.size(), 10u);
  EXPECT_THAT(file.sum(), SizeIs(64));
  EXPECT_THAT(LookAtFile(temp.path() + "/none", 1).error(), HasSubstr("/none: No such file"));
  EXPECT_THAT(LookAtFile(temp.path(), 1).error(), IsEmpty());
  // What has to be a file is one, or a folder that stands for one.
  EXPECT_EQ(LookAtRequired(temp.path() + "/data.bin", 1 << 20).sum(), file.sum());
  EXPECT_THAT(LookAtRequired(temp.path() + "/none", 1).error(), HasSubstr("/none: No such file"));
  EXPECT_THAT(LookAtRequired(temp.path(), 1).error(), EndsWith(" is a folder, not a file"));
  ASSERT_EQ(mkfifo((temp.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_THAT(LookAtRequired(temp.path() + "/pipe", 1).error(), EndsWith(" is a pipe, not a file"));
  Write(temp.path() + "/app/__main__.py", "0123456789");
  const auto app = LookAtRequired(temp.path() + "/app", 1 << 20);
  EXPECT_EQ(app.sum(), file.sum());
  EXPECT_EQ(app.path(), temp.path() + "/app");
  // Shorter than its size says.
  EXPECT_THAT(LookAtFile("/sys/devices/system/cpu/online", 1 << 20).error(),
              HasSubstr("it ends before its size"));
  // A folder that is still to be made: its nearest parent counts.
  const auto folder = LookAtFolder(temp.path() + "/a/b/c");
  EXPECT_THAT(folder.error(), IsEmpty());
  EXPECT_GT(folder.free_bytes(), 0u);
  EXPECT_THAT(LookAtFolder(temp.path() + "/data.bin").error(), HasSubstr("is not a folder"));
  EXPECT_THAT(LookAtFolder("/proc/sys/kernel/none").error(), AnyOf(IsEmpty(), HasSubstr("denied")));
}

TEST(KernelLog, XidRecords) {
  const auto fault = ParseKernelRecord(
      "4,2113,5025712345,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU "
      "has "
      "fallen off the bus.\n SUBSYSTEM=pci\n",
      1'000'000'000'000);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->xid(), 79u);
  EXPECT_EQ(fault->bus_id(), "0000:3b:00");
  EXPECT_EQ(fault->realtime_ns(), 1'000'000'000'000 + 5'025'712'345'000);
  EXPECT_THAT(fault->text(), ::testing::EndsWith("fallen off the bus."));
  EXPECT_FALSE(ParseKernelRecord("6,1,2,-;usb 1-1: new device", 0));
  EXPECT_FALSE(ParseKernelRecord("4,1,2,-;NVRM: Xid (PCI:0000:3b:00", 0));
  EXPECT_FALSE(ParseKernelRecord("NVRM: Xid (PCI:0000:3b:00): 79", 0));
  EXPECT_FALSE(ParseKernelRecord("", 0));
}

TEST(Rdma, PortsOfASysFolder) {
  const TempDir temp;
  const std::string root = temp.path() + "/infiniband";
  Write(root + "/mlx5_0/ports/1/state", "4: ACTIVE\n");
  Write(root + "/mlx5_0/ports/1/link_layer", "InfiniBand\n");
  Write(root + "/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
  Write(root + "/mlx5_1/ports/1/state", "1: DOWN\n");
  const auto ports = RdmaPorts(root);
  ASSERT_THAT(ports, SizeIs(2));
  EXPECT_EQ(ports[0].state(), "ACTIVE");
  EXPECT_EQ(ports[0].link_layer(), "InfiniBand");
  EXPECT_EQ(ports[1].device(), "mlx5_1");
  EXPECT_EQ(ports[1].state(), "DOWN");
  EXPECT_THAT(RdmaPorts(temp.path() + "/none"), IsEmpty());
}

TEST(Python, AnswersOfAnInterpreter) {
  ToolOutput output;
  output.exit_code = 0;
  output.out = "python=3.11.2\ntorch=2.11.0+cu130\ncuda=13.0\nnccl=2.28.9\n";
  const auto fact = ParsePython(output);
  EXPECT_EQ(fact.version(), "3.11.2");
  EXPECT_EQ(fact.torch(), "2.11.0+cu130");
  EXPECT_EQ(fact.nccl(), "2.28.9");
  EXPECT_THAT(fact.error(), IsEmpty());
  output = {};
  output.exit_code = 1;
  output.err = "Traceback:\nModuleNotFoundError: No module named 'encodings'\n";
  EXPECT_EQ(ParsePython(output).error(),
            "it ends with 1: ModuleNotFoundError: No module named 'encodings'");
  EXPECT_EQ(ParsePython(ToolOutput{true, "no answer within the time limit", -1, "", ""}).error(),
            "no answer within the time limit");
  EXPECT_EQ(ParsePython(ToolOutput{true, "", 0, "hello\n", ""}).error(),
            "it does not answer as a Python 3");
}

TEST(AnswerProbe, OneAnswerForAll) {
  const TempDir temp;
  Write(temp.path() + "/bin/tool", "#!/bin/sh\n", 0755);
  Write(temp.path() + "/data", "abc");
  v1::Probe probe;
  probe.set_probe_id(7);
  probe.set_working_dir(temp.path());
  probe.set_program("tool");
  probe.add_readable(temp.path() + "/data");
  probe.add_readable(temp.path() + "/none\xff");
  probe.add_optional_files(temp.path() + "/none");
  probe.add_optional_files(temp.path() + "/data");
  probe.add_writable(temp.path() + "/ckpt");
  v1::EnvVar& path = *probe.add_env();
  path.set_name("PATH");
  path.set_value(temp.path() + "/bin");  // as the job's own [env] has it
  probe.mutable_time_limit()->set_seconds(20);
  ProbeSurroundings surroundings;
  surroundings.environment = kPath;
  surroundings.state_dir = temp.path();
  surroundings.fake_devices = 2;
  const v1::ProbeResult result = AnswerProbe(probe, surroundings);
  EXPECT_EQ(result.probe_id(), 7u);
  EXPECT_EQ(result.program_path(), temp.path() + "/bin/tool");
  EXPECT_EQ(result.program().size(), 10u);
  EXPECT_THAT(result.working_dir_error(), IsEmpty());
  ASSERT_THAT(result.files(), SizeIs(2));
  EXPECT_THAT(result.files(0).error(), IsEmpty());
  EXPECT_THAT(result.files(1).error(), HasSubstr("No such file"));
  ASSERT_THAT(result.optional_files(), SizeIs(1));
  EXPECT_EQ(result.optional_files(0).path(), temp.path() + "/data");
  ASSERT_THAT(result.folders(), SizeIs(3));
  EXPECT_EQ(result.folders(1).path(), "/dev/shm");
  EXPECT_EQ(result.folders(2).path(), temp.path() + "/ckpt");
  EXPECT_THAT(result.devices(), SizeIs(2));
  EXPECT_GT(result.nofile(), 0u);
  EXPECT_GT(result.disk_free_bytes(), 0u);
  v1::ProbeResult copy;
  EXPECT_TRUE(copy.ParseFromString(result.SerializeAsString()));  // all of it is UTF-8
}

// A file system whose server never answers, as a dead NFS server: the kernel waits in every call.
class DeadFileSystem {
 public:
  explicit DeadFileSystem(const std::string& at) : at_(at), fd_(open("/dev/fuse", O_RDWR)) {
    if (!fd_) return;
    const std::string options =
        "fd=" + std::to_string(fd_.get()) + ",rootmode=40000,user_id=0,group_id=0";
    mounted_ = mount("dead", at.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
  }
  ~DeadFileSystem() {
    fd_.reset();  // whoever waits gets an error
    if (mounted_) umount2(at_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

 private:
  const std::string at_;
  UniqueFd fd_;
  bool mounted_ = false;
};

TEST(AnswerProbe, ADeadFileSystemIsNamedAndTheRestIsAnswered) {
  const TempDir temp;
  std::filesystem::create_directories(temp.path() + "/dead");
  const DeadFileSystem dead(temp.path() + "/dead");
  if (!dead.mounted()) GTEST_SKIP() << "needs root and /dev/fuse";
  v1::Probe probe;
  probe.set_working_dir(temp.path() + "/dead");
  probe.add_readable(temp.path() + "/dead/data.bin");
  probe.add_readable("/etc/passwd");
  probe.add_writable(temp.path() + "/dead/ckpt");
  probe.mutable_time_limit()->set_nanos(300'000'000);
  ProbeSurroundings surroundings;
  surroundings.environment = kPath;
  surroundings.state_dir = temp.path();
  surroundings.fake_devices = 1;
  const v1::ProbeResult result = AnswerProbe(probe, surroundings);
  ASSERT_THAT(result.files(), SizeIs(2));
  EXPECT_TRUE(result.files(0).timed_out());
  EXPECT_EQ(result.files(0).error(), temp.path() + "/dead/data.bin: no answer within 300 ms");
  EXPECT_THAT(result.files(1).error(), IsEmpty());
  EXPECT_EQ(result.working_dir_error(),
            "working folder " + temp.path() + "/dead: no answer within 300 ms");
  EXPECT_TRUE(result.folders(2).timed_out());
  EXPECT_THAT(result.devices(), SizeIs(1));
}

}  // namespace
}  // namespace muster::facts
