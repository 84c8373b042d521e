#include "worker/facts/answer_probe.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "common/utf8.h"
#include "worker/facts/devices.h"
#include "worker/facts/files.h"
#include "worker/facts/kernel_log.h"
#include "worker/facts/limits.h"
#include "worker/facts/network.h"
#include "worker/facts/node_facts.h"
#include "worker/facts/python.h"
#include "worker/facts/questions.h"
#include "worker/facts/rdma.h"
#include "worker/stage/versions.h"

namespace muster::facts {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;
using std::chrono::milliseconds;

constexpr milliseconds kDefaultLimit(5'000);
constexpr milliseconds kMargin(300);  // for what keeps the limit itself: tools and connections
constexpr int64_t kFaultsNs = int64_t{24} * 3600 * 1'000'000'000;
constexpr uint64_t kWholeProgram = uint64_t{256} << 20;
constexpr uint64_t kWholeFile = uint64_t{4} << 20;
constexpr size_t kMostThreads = 64;  // for files

int64_t RealtimeNs() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

// Everything of one probe; shared with its threads, which may outlive the answer.
struct Inquiry {
  v1::Probe probe;
  ProbeSurroundings surroundings;
  Environment environment;  // of a rank
  TimePoint deadline;
  std::string late;  // "no answer within 5 s"
  v1::ProbeResult result;
};
using InquiryPtr = std::shared_ptr<Inquiry>;

Environment RankEnvironment(const v1::Probe& probe, const Environment& base) {
  Environment environment = base;
  for (const v1::EnvVar& variable : probe.env()) {
    std::erase_if(environment, [&](const auto& known) { return known.first == variable.name(); });
    environment.emplace_back(variable.name(), variable.value());
  }
  return environment;
}

// Asks `Look` about the paths, some to a thread when there are many, and adds what it says.
template <typename Fact, typename Look>
void AskPaths(Questions& questions, const InquiryPtr& inquiry, std::vector<std::string> paths,
              Look look, std::function<void(Fact)> add) {
  const size_t group = 1 + paths.size() / kMostThreads;
  for (size_t begin = 0; begin < paths.size(); begin += group) {
    const std::vector<std::string> mine(
        paths.begin() + static_cast<std::ptrdiff_t>(begin),
        paths.begin() + static_cast<std::ptrdiff_t>(std::min(begin + group, paths.size())));
    questions.Ask(
        [mine, look, add]() -> Questions::Answer {
          std::vector<Fact> facts;
          facts.reserve(mine.size());
          for (const std::string& path : mine) facts.push_back(look(path));
          return [facts, add] {
            for (const Fact& fact : facts) add(fact);
          };
        },
        [mine, add, inquiry] {
          for (const std::string& path : mine) {
            Fact fact;
            fact.set_path(path);
            fact.set_timed_out(true);
            fact.set_error(path + ": " + inquiry->late);
            add(fact);
          }
        });
  }
}

void AskFiles(Questions& questions, const InquiryPtr& inquiry) {
  const v1::Probe& probe = inquiry->probe;
  const auto look = [](const std::string& path) { return LookAtFile(path, kWholeFile); };
  AskPaths<v1::FileFact>(
      questions, inquiry, {probe.readable().begin(), probe.readable().end()},
      [](const std::string& path) { return LookAtRequired(path, kWholeFile); },
      [inquiry](const v1::FileFact& fact) { *inquiry->result.add_files() = fact; });
  AskPaths<v1::FileFact>(questions, inquiry,
                         {probe.optional_files().begin(), probe.optional_files().end()}, look,
                         [inquiry](const v1::FileFact& fact) {
                           if (fact.error().empty() || fact.timed_out())
                             *inquiry->result.add_optional_files() = fact;
                         });
  std::vector<std::string> folders = {inquiry->surroundings.state_dir, "/dev/shm"};
  folders.insert(folders.end(), probe.writable().begin(), probe.writable().end());
  AskPaths<v1::FolderFact>(
      questions, inquiry, std::move(folders), LookAtFolder,
      [inquiry](const v1::FolderFact& fact) { *inquiry->result.add_folders() = fact; });
}

void AskProgram(Questions& questions, const InquiryPtr& inquiry) {
  v1::ProbeResult& result = inquiry->result;
  const v1::Probe& probe = inquiry->probe;
  if (!probe.working_dir().empty()) {
    questions.Ask(
        [inquiry, &result]() -> Questions::Answer {
          const std::string error = WorkingDirError(inquiry->probe.working_dir());
          return [error, &result] { result.set_working_dir_error(error); };
        },
        [inquiry, &result] {
          result.set_working_dir_error("working folder " + inquiry->probe.working_dir() + ": " +
                                       inquiry->late);
        });
  }
  if (probe.program().empty()) return;
  questions.Ask(
      [inquiry, &result]() -> Questions::Answer {
        const ResolvedProgram program = ResolveProgram(
            inquiry->probe.program(), inquiry->probe.working_dir(), inquiry->environment);
        v1::FileFact file;
        if (program.error.empty()) file = LookAtFile(program.path, kWholeProgram);
        return [program, file, &result] {
          result.set_program_path(program.path);
          result.set_program_error(program.error);
          if (program.error.empty()) *result.mutable_program() = file;
        };
      },
      [inquiry, &result] {
        result.set_program_error("program " + inquiry->probe.program() + ": " + inquiry->late);
      });
  if (!probe.python()) return;
  questions.Ask(
      [inquiry, &result]() -> Questions::Answer {
        const ResolvedProgram program = ResolveProgram(
            inquiry->probe.program(), inquiry->probe.working_dir(), inquiry->environment);
        v1::PythonFact fact;
        if (program.error.empty())
          fact = AskPython(program.path, inquiry->environment, inquiry->deadline);
        return [fact, found = program.error.empty(), &result] {
          if (found) *result.mutable_python() = fact;
        };
      },
      [inquiry, &result] { result.mutable_python()->set_error(inquiry->late); });
}

void AskDevices(Questions& questions, const InquiryPtr& inquiry) {
  v1::ProbeResult& result = inquiry->result;
  if (const uint32_t fake = inquiry->surroundings.fake_devices; fake > 0) {
    for (v1::Device& device : FakeDevices(fake)) *result.add_devices() = std::move(device);
    return;
  }
  questions.Ask(
      [inquiry, &result]() -> Questions::Answer {
        const DeviceList list =
            FindDevices(inquiry->environment, ProcReader::Real(), inquiry->deadline);
        return [list, &result] {
          for (const v1::Device& device : list.devices) *result.add_devices() = device;
          result.set_device_error(list.error);
        };
      },
      [inquiry, &result] { result.set_device_error(inquiry->late); });
}

void AskNetwork(Questions& questions, const InquiryPtr& inquiry) {
  if (!inquiry->probe.has_network()) return;
  v1::ProbeResult& result = inquiry->result;
  questions.Ask(
      [inquiry, &result]() -> Questions::Answer {
        const v1::NetworkResult network = AnswerNetwork(
            inquiry->probe.network(), inquiry->environment, ProcReader::Real(), inquiry->deadline);
        return [network, &result] { *result.mutable_network() = network; };
      },
      [inquiry, &result] {
        result.mutable_network()->set_listen_error("names could not be resolved: " + inquiry->late);
      });
}

void AskStage(Questions& questions, const InquiryPtr& inquiry) {
  const std::string& id = inquiry->probe.stage_id();
  if (id.empty()) return;
  v1::ProbeResult& result = inquiry->result;
  questions.Ask(
      [inquiry, &result]() -> Questions::Answer {
        const absl::Status status =
            stage::QuickCheck(inquiry->surroundings.state_dir, inquiry->probe.stage_id());
        return [error = std::string(status.message()), &result] { result.set_stage_error(error); };
      },
      [inquiry, &result] { result.set_stage_error("the staged tree: " + inquiry->late); });
}

void AskKernel(Questions& questions, const InquiryPtr& inquiry) {
  v1::ProbeResult& result = inquiry->result;
  questions.Ask(
      [inquiry, &result]() -> Questions::Answer {
        const v1::KernelLook look =
            LookAtKernel(inquiry->probe.end_kernel_since_ns(), inquiry->surroundings.kernel_log,
                         inquiry->environment, inquiry->deadline);
        return [look, &result] { *result.mutable_kernel() = look; };
      },
      [inquiry, &result] { result.mutable_kernel()->set_error(inquiry->late); });
}

// What only reads the kernel's own files.
void AnswerLocal(v1::ProbeResult& result) {
  const Limits limits = RankLimits();
  result.set_memlock_bytes(limits.memlock_bytes);
  result.set_nofile(limits.nofile);
  for (v1::RdmaPort& port : RdmaPorts()) *result.add_rdma() = std::move(port);
  for (v1::KernelFault& fault : KernelFaults(RealtimeNs() - kFaultsNs))
    *result.add_kernel_faults() = std::move(fault);
}

// Commands, tools and file systems say anything; a message takes only UTF-8.
void MakeUtf8(google::protobuf::Message& message) {
  const auto* reflection = message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->message_type() != nullptr) {
        MakeUtf8(field->is_repeated() ? *reflection->MutableRepeatedMessage(&message, field, i)
                                      : *reflection->MutableMessage(&message, field));
      } else if (field->type() == google::protobuf::FieldDescriptor::TYPE_STRING) {
        if (field->is_repeated()) {
          reflection->SetRepeatedString(
              &message, field, i, ToValidUtf8(reflection->GetRepeatedString(message, field, i)));
        } else {
          reflection->SetString(&message, field,
                                ToValidUtf8(reflection->GetString(message, field)));
        }
      }
    }
  }
}

}  // namespace

milliseconds TimeLimitOf(const v1::Probe& probe) {
  if (!probe.has_time_limit()) return kDefaultLimit;
  return milliseconds(probe.time_limit().seconds() * 1000 + probe.time_limit().nanos() / 1'000'000);
}

v1::ProbeResult AnswerProbe(const v1::Probe& probe, const ProbeSurroundings& surroundings) {
  const auto inquiry = std::make_shared<Inquiry>();
  const milliseconds limit = TimeLimitOf(probe);
  inquiry->probe = probe;
  inquiry->surroundings = surroundings;
  inquiry->environment = RankEnvironment(probe, surroundings.environment);
  inquiry->deadline = std::chrono::steady_clock::now() + limit;
  inquiry->late = "no answer within " + std::to_string(limit.count()) + " ms";
  Questions questions;
  if (probe.has_end_kernel_since_ns()) {
    if (probe.end_kernel_since_ns() >= 0) AskKernel(questions, inquiry);
    AskDevices(questions, inquiry);
    questions.Collect(inquiry->deadline + kMargin);
    MakeUtf8(inquiry->result);
    return inquiry->result;
  }
  AskNetwork(questions, inquiry);  // first: others wait for it
  AskProgram(questions, inquiry);
  AskDevices(questions, inquiry);
  AskFiles(questions, inquiry);
  AskStage(questions, inquiry);
  AnswerLocal(inquiry->result);
  questions.Collect(inquiry->deadline + kMargin);
  inquiry->result.set_probe_id(probe.probe_id());
  if (inquiry->result.folders_size() > 0)
    inquiry->result.set_disk_free_bytes(inquiry->result.folders(0).free_bytes());
  MakeUtf8(inquiry->result);
  return inquiry->result;
}

}  // namespace muster::facts
