#include "controller/preflight/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::preflight {

// Found by GoogleTest.
void PrintTo(const Finding& finding, std::ostream* out) {
  *out << SeverityName(finding.severity) << " " << ToLine(finding);
}

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

NodeFacts Good(const std::string& host, const std::string& boot_id) {
  NodeFacts node;
  node.host = host;
  node.hello.set_boot_id(boot_id);
  node.hello.set_net_ns(1);
  node.hello.set_version("0.1.0");
  node.hello.set_state_dir("/var/tmp/muster-0/" + host);
  node.probe.set_program_path("/usr/bin/python3");
  node.probe.set_disk_free_bytes(uint64_t{50} << 30);
  node.clock = ClockOffset{0, 1'000'000};
  return node;
}

std::vector<NodeFacts> Three() {
  return {Good("n1", "a"), Good("n2", "b"), Good("n3", "c")};
}

Options DefaultOptions() {
  Options options;
  options.controller_version = "0.1.0";
  options.working_dir = "/work";
  options.program = "python3";
  return options;
}

v1::FileFact File(const std::string& path, uint64_t size) {
  v1::FileFact fact;
  fact.set_path(path);
  fact.set_size(size);
  return fact;
}

auto Is(const std::string& check, Severity severity, const std::string& host,
        const std::string& value) {
  return AllOf(Field(&Finding::check, check), Field(&Finding::severity, severity),
               Field(&Finding::host, host), Field(&Finding::value, HasSubstr(value)));
}

TEST(Checks, EqualNodesGiveNoFinding) {
  EXPECT_THAT(Check(Three(), DefaultOptions()), IsEmpty());
}

TEST(Checks, OneMachineUnderTwoNamesIsAnError) {
  auto nodes = Three();
  nodes[2].hello.set_boot_id("a");
  EXPECT_THAT(Check(nodes, DefaultOptions()),
              ElementsAre(Is("machine", Severity::kError, "n3", "same machine as n1")));
  nodes[2].hello.set_net_ns(2);  // a network namespace of its own: a container
  EXPECT_THAT(Check(nodes, DefaultOptions()), IsEmpty());
}

TEST(Checks, LoopbackWorkersMayShareAMachine) {
  auto nodes = Three();
  const char* const names[] = {"127.0.0.2", "a.localhost", "localhost"};
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].host = names[i];
    nodes[i].hello.set_boot_id("a");
  }
  EXPECT_THAT(Check(nodes, DefaultOptions()), IsEmpty());
}

TEST(Checks, AnotherVersionIsAWarning) {
  auto nodes = Three();
  nodes[1].hello.set_version("0.0.9");
  const auto findings = Check(nodes, DefaultOptions());
  EXPECT_THAT(findings, ElementsAre(Is("version", Severity::kWarning, "n2", "0.0.9")));
  EXPECT_FALSE(HasError(findings));
}

TEST(Checks, ACertificateThatEndsSoonIsAWarning) {
  auto nodes = Three();
  constexpr int64_t kNow = 1'800'000'000;
  constexpr int64_t kDay = 86'400;
  const int64_t ends[] = {kNow + 15 * kDay, kNow + 3 * kDay + 5, kNow - 2 * kDay};
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].probe.set_realtime_ns(kNow * 1'000'000'000);
    nodes[i].hello.set_certificate_ends_s(ends[i]);
  }
  EXPECT_THAT(Check(nodes, DefaultOptions()),
              ElementsAre(Is("certificate", Severity::kWarning, "n2", "ends in 3 days"),
                          Is("certificate", Severity::kWarning, "n3", "has expired 2 days ago")));
}

TEST(Checks, AClockIsOffOnlyBeyondItsUncertainty) {
  auto nodes = Three();
  nodes[1].clock = ClockOffset{5'000'000'000, 1'000'000};
  nodes[2].clock = ClockOffset{-5'000'000'000, 4'000'000'000};
  EXPECT_THAT(Check(nodes, DefaultOptions()),
              ElementsAre(Is("clock", Severity::kWarning, "n2", "5000 ms ahead of")));
}

TEST(Checks, MissingDevicesAreNamed) {
  auto nodes = Three();
  for (auto& node : nodes) {
    node.devices = {0, 1};
    node.hello.add_devices()->set_index(0);
    node.hello.add_devices()->set_index(1);
  }
  nodes[1].hello.mutable_devices()->RemoveLast();
  EXPECT_THAT(Check(nodes, DefaultOptions()),
              ElementsAre(Is("devices", Severity::kError, "n2", "missing: 1")));
}

TEST(Checks, HostsWithoutDevicesRunOnTheirCores) {
  auto nodes = Three();
  for (auto& node : nodes) node.devices = {0, 1};
  EXPECT_THAT(Check(nodes, DefaultOptions()), IsEmpty());
}

TEST(Checks, ProgramIsComparedWithTheMajority) {
  auto nodes = Three();
  nodes[0].probe.set_program_path("/opt/bin/python3");
  const auto findings = Check(nodes, DefaultOptions());
  EXPECT_THAT(findings, ElementsAre(Is("program", Severity::kError, "n1", "/opt/bin/python3")));
  EXPECT_EQ(findings[0].majority, "/usr/bin/python3");
}

TEST(Checks, TwoNodesThatDifferAreComparedWithTheHead) {
  auto nodes = Three();
  nodes.resize(2);
  nodes[1].probe.set_program_path("/opt/bin/python3");
  EXPECT_THAT(Check(nodes, DefaultOptions()),
              ElementsAre(Is("program", Severity::kError, "n2", "/opt/bin/python3")));
}

TEST(Checks, AMissingProgramIsReportedOnce) {
  auto nodes = Three();
  nodes[1].probe.clear_program_path();
  nodes[1].probe.set_program_error("program python3 in PATH=/bin: No such file or directory");
  const auto findings = Check(nodes, DefaultOptions());
  EXPECT_THAT(findings, ElementsAre(Is("program", Severity::kError, "n2", "No such file")));
  EXPECT_THAT(ToLine(findings[0]),
              HasSubstr("(most hosts: /usr/bin/python3); fix: install python3 on n2"));
}

TEST(Checks, TheFixOfAProgramFitsItsError) {
  auto nodes = Three();
  nodes[1].probe.clear_program_path();
  nodes[1].probe.set_program_error("program python3 in PATH=/bin: No such file or directory");
  EXPECT_THAT(ToLine(Check(nodes, DefaultOptions())[0]),
              HasSubstr("; a script in the working folder is ./python3"));
  nodes[1].probe.set_program_error("program a: Permission denied (make it executable: chmod +x a)");
  EXPECT_EQ(Check(nodes, DefaultOptions())[0].fix, "");
}

TEST(Checks, WorkingDirPortAndDisk) {
  auto nodes = Three();
  nodes[0].probe.set_port_error("127.0.0.2:29500 is in use by pid 812 (python train.py)");
  nodes[1].probe.add_folders()->set_free_bytes(100 << 20);
  nodes[2].probe.set_working_dir_error("working folder /work: No such file or directory");
  EXPECT_THAT(Check(nodes, DefaultOptions()),
              ElementsAre(Is("port", Severity::kError, "n1", "pid 812"),
                          Is("working_dir", Severity::kError, "n3", "No such file"),
                          Is("disk", Severity::kWarning, "n2", "only 100 MiB")));
}

TEST(Checks, FilesMustBeReadableAndEqual) {
  auto nodes = Three();
  for (auto& node : nodes) *node.probe.add_files() = File("/data/x.bin", 100);
  nodes[1].probe.mutable_files(0)->set_size(99);
  nodes[2].probe.mutable_files(0)->set_error("No such file or directory");
  const auto findings = Check(nodes, DefaultOptions());
  EXPECT_THAT(findings,
              ElementsAre(Is("files", Severity::kError, "n3", "/data/x.bin: No such file"),
                          Is("files", Severity::kError, "n2", "/data/x.bin: 99 bytes")));
  EXPECT_EQ(findings[1].majority, "100 bytes");
}

TEST(Checks, AFileThatNobodyCanReadHasNoMajority) {
  auto nodes = Three();
  for (auto& node : nodes) {
    *node.probe.add_files() = File("/data/x.bin", 0);
    node.probe.mutable_files(0)->set_error("/data/x.bin: No such file or directory");
  }
  const auto findings = Check(nodes, DefaultOptions());
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0].value, "/data/x.bin: No such file or directory");
}

TEST(Checks, SkippedChecksDoNotRun) {
  auto nodes = Three();
  nodes[0].probe.set_port_error("in use");
  Options options = DefaultOptions();
  options.skip = {"port"};
  EXPECT_THAT(Check(nodes, options), IsEmpty());
}

TEST(ValidateSkip, NamesTheNearest) {
  EXPECT_TRUE(ValidateSkip({"port", "clock"}).ok());
  const auto status = ValidateSkip({"prot"});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("there is no check 'prot'; did you mean 'port'?"));
}

TEST(ToLine, WithoutHost) {
  EXPECT_EQ(ToLine({"files", Severity::kNote, "", "nothing to see", "", ""}),
            "files: nothing to see");
}

}  // namespace
}  // namespace muster::preflight
