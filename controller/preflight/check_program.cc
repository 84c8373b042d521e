#include <absl/strings/str_cat.h>

#include <map>

#include "controller/preflight/check_functions.h"

namespace muster::preflight {
namespace {

constexpr char kCopy[] = "copy the same file to every host";

// Workers name the path in the error; a reader must see it once in any case.
std::string FileError(const v1::FileFact& file) {
  return file.error().starts_with(file.path()) ? file.error()
                                               : absl::StrCat(file.path(), ": ", file.error());
}

std::string FixForFile(const v1::FileFact& file, const std::string& host) {
  if (!file.timed_out()) return "check the path, and that the file system is mounted there";
  return absl::StrCat("on ", host, ": the file system of ", file.path(),
                      " hangs; see findmnt -T, then umount -f -l and mount it anew");
}

// One path over all nodes.
struct Column {
  std::vector<std::string> sizes;  // by node; "" = not there
  std::vector<std::string> sums;
};

void AddFact(const v1::FileFact& file, size_t node, size_t nodes,
             std::map<std::string, Column>& columns) {
  Column& column = columns[file.path()];
  column.sizes.resize(nodes);
  column.sums.resize(nodes);
  if (!file.error().empty()) return;
  column.sizes[node] = absl::StrCat(file.size(), " bytes");
  column.sums[node] = file.sum();
}

const std::string& Expected(const std::vector<std::string>& values, const std::string& majority) {
  if (!majority.empty()) return majority;
  for (const auto& value : values) {
    if (!value.empty()) return value;
  }
  return majority;
}

// Other sizes, and other content of the same size.
void CompareColumn(const Nodes& nodes, const std::string& path, const Column& column,
                   Findings& out) {
  const std::string size_majority = Majority(column.sizes);
  const std::string size = Expected(column.sizes, size_majority);
  std::vector<std::string> sums = column.sums;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (column.sizes[i].empty() || size.empty() || column.sizes[i] == size) continue;
    sums[i].clear();
    out.push_back({"files", Severity::kError, nodes[i].host,
                   absl::StrCat(path, ": ", column.sizes[i]), size, kCopy});
  }
  const std::string sum_majority = Majority(sums);
  const std::string sum = Expected(sums, sum_majority);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (sums[i].empty() || sums[i] == sum) continue;
    out.push_back({"files", Severity::kError, nodes[i].host,
                   absl::StrCat(path, ": ", size, " too, but other content (sha256 ",
                                sums[i].substr(0, 12), "...)"),
                   absl::StrCat("sha256 ", sum.substr(0, 12), "..."), kCopy});
  }
}

// Words of the command that are files on most hosts must be files on all; where most have none, the
// word may well be an output.
void CheckOptional(const Nodes& nodes, Findings& out) {
  std::map<std::string, Column> columns;
  size_t present = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].absent.empty()) continue;
    ++present;
    for (const auto& file : nodes[i].probe.optional_files()) {
      AddFact(file, i, nodes.size(), columns);
      if (file.timed_out()) {
        out.push_back({"files", Severity::kError, nodes[i].host, FileError(file), "",
                       FixForFile(file, nodes[i].host)});
      }
    }
  }
  for (const auto& [path, column] : columns) {
    size_t have = 0;
    for (const auto& value : column.sizes) have += value.empty() ? 0 : 1;
    const bool most = 2 * have > present;
    const bool head_of_two = present == 2 && !column.sizes.front().empty();
    for (size_t i = 0; (most || head_of_two) && i < nodes.size(); ++i) {
      if (!nodes[i].absent.empty() || !column.sizes[i].empty()) continue;
      out.push_back({"files", Severity::kError, nodes[i].host, path + ": is not there",
                     "it is there", kCopy});
    }
    CompareColumn(nodes, path, column, out);
  }
}

// The error of a file that may not be run says how to mend it. A bare name is looked for in PATH
// alone, which surprises those whose script lies in the working folder.
std::string FixForProgram(const std::string& program, const NodeFacts& node) {
  if (node.probe.program_error().find("chmod +x") != std::string::npos) return "";
  std::string fix = absl::StrCat("install ", program, " on ", node.host,
                                 ", or give the command with a path that every host has");
  if (program.find('/') == std::string::npos)
    absl::StrAppend(&fix, "; a script in the working folder is ./", program);
  return fix;
}

}  // namespace

void CheckWorkingDir(const Nodes& nodes, const Options& options, Findings& out) {
  for (const auto& node : nodes) {
    if (node.probe.working_dir_error().empty()) continue;
    out.push_back({"working_dir", Severity::kError, node.host, node.probe.working_dir_error(), "",
                   absl::StrCat("make ", options.working_dir, " on ", node.host,
                                ", or submit from a folder that every host has")});
  }
}

void CheckProgram(const Nodes& nodes, const Options& options, Findings& out) {
  std::vector<std::string> paths;
  paths.reserve(nodes.size());
  for (const auto& node : nodes) paths.push_back(node.probe.program_path());
  const std::string majority = Majority(paths);
  for (const auto& node : nodes) {
    if (node.probe.program_error().empty()) continue;
    out.push_back({"program", Severity::kError, node.host, node.probe.program_error(), majority,
                   FixForProgram(options.program, node)});
  }
  CompareAll(
      nodes, "program", Severity::kError,
      absl::StrCat("give the path of ", options.program,
                   " that is meant, or make PATH equal on all hosts"),
      [](const NodeFacts& node) { return node.probe.program_path(); }, out);
  CompareAll(
      nodes, "program", Severity::kError,
      absl::StrCat("install the same build of ", options.program, " on all hosts"),
      [](const NodeFacts& node) {
        const v1::FileFact& file = node.probe.program();
        if (file.sum().empty()) return std::string();
        return absl::StrCat(file.path(), ": ", file.size(), " bytes, sha256 ",
                            file.sum().substr(0, 12), "...");
      },
      out);
}

void CheckPython(const Nodes& nodes, const Options& options, Findings& out) {
  for (const auto& node : nodes) {
    if (node.probe.python().error().empty()) continue;
    out.push_back({"python", Severity::kError, node.host,
                   absl::StrCat(node.probe.program_path(), ": ", node.probe.python().error()), "",
                   absl::StrCat("run on ", node.host, ": ", options.program,
                                " -c 'import sys; print(sys.version)'")});
  }
  const auto compare = [&](const char* what, Severity severity, auto version) {
    CompareAll(
        nodes, "python", severity, "install the same versions on all hosts",
        [&](const NodeFacts& node) {
          const std::string& text = version(node.probe.python());
          return text.empty() ? "" : absl::StrCat(what, " ", text);
        },
        out);
  };
  compare("Python", Severity::kWarning,
          [](const v1::PythonFact& python) -> const std::string& { return python.version(); });
  // One host without PyTorch among others that have it is odd too.
  CompareAll(
      nodes, "python", Severity::kError, "install the same PyTorch on all hosts",
      [](const NodeFacts& node) -> std::string {
        const v1::PythonFact& python = node.probe.python();
        if (python.version().empty()) return "";
        return python.torch().empty() ? "no PyTorch" : "PyTorch " + python.torch();
      },
      out);
  compare("NCCL", Severity::kError,
          [](const v1::PythonFact& python) -> const std::string& { return python.nccl(); });
}

void CheckFiles(const Nodes& nodes, const Options&, Findings& out) {
  std::map<std::string, Column> columns;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const auto& file : nodes[i].probe.files()) {
      AddFact(file, i, nodes.size(), columns);
      if (!file.error().empty()) {
        out.push_back({"files", Severity::kError, nodes[i].host, FileError(file), "",
                       FixForFile(file, nodes[i].host)});
      }
    }
  }
  for (const auto& [path, column] : columns) CompareColumn(nodes, path, column, out);
  CheckOptional(nodes, out);
}

}  // namespace muster::preflight
