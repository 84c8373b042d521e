#include "worker/facts/python.h"

#include <sstream>

namespace muster::facts {
namespace {

// Runs on any Python 3; what is not there is left out.
constexpr char kScript[] = R"(
import sys
print("python=%d.%d.%d" % sys.version_info[:3])
try:
    import importlib.util as util
    spec = util.find_spec("torch")
    names = {}
    if spec and spec.origin:
        with open(spec.origin.replace("__init__.py", "version.py")) as f:
            exec(f.read(), names)
        print("torch=%s" % names.get("__version__", "?"))
        print("cuda=%s" % (names.get("cuda") or ""))
        from importlib import metadata
        for major in (13, 12, 11):
            try:
                print("nccl=%s" % metadata.version("nvidia-nccl-cu%d" % major))
                break
            except metadata.PackageNotFoundError:
                pass
except Exception as error:
    sys.stderr.write("%s: %s" % (type(error).__name__, error))
)";

std::string LastLine(const std::string& text) {
  const size_t end = text.find_last_not_of(" \n\r");
  if (end == std::string::npos) return "";
  const size_t begin = text.find_last_of('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

}  // namespace

v1::PythonFact ParsePython(const ToolOutput& output) {
  v1::PythonFact fact;
  std::istringstream lines(output.out);
  for (std::string line; std::getline(lines, line);) {
    const size_t equal = line.find('=');
    if (equal == std::string::npos) continue;
    const std::string name = line.substr(0, equal);
    const std::string value = line.substr(equal + 1);
    if (name == "python") fact.set_version(value);
    if (name == "torch") fact.set_torch(value);
    if (name == "cuda") fact.set_cuda(value);
    if (name == "nccl") fact.set_nccl(value);
  }
  if (!output.failure.empty()) {
    fact.set_error(output.failure);
  } else if (output.exit_code != 0) {
    fact.set_error("it ends with " + std::to_string(output.exit_code) + ": " +
                   LastLine(output.err));
  } else if (fact.version().empty()) {
    fact.set_error("it does not answer as a Python 3");
  }
  return fact;
}

v1::PythonFact AskPython(const std::string& interpreter, const Environment& environment,
                         std::chrono::steady_clock::time_point deadline) {
  return ParsePython(RunTool({interpreter, "-c", kScript}, environment, deadline));
}

}  // namespace muster::facts
