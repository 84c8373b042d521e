#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "controller/plan/env_file.h"
#include "controller/plan/environment.h"

// Any bytes are variables that a rank can have, or complaints with lines.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;  // NOLINT(google-build-using-namespace)
  const auto lines = plan::ParseEnvFile({reinterpret_cast<const char*>(data), size}, "f");
  if (!lines.ok()) {
    if (!std::string(lines.status().message()).starts_with("f:")) std::abort();
    return 0;
  }
  uint32_t last = 0;
  for (const plan::EnvFileVariable& variable : *lines) {
    if (variable.line <= last) std::abort();
    last = variable.line;
    if (!plan::IsVariableName(variable.name) || plan::IsSetByMuster(variable.name)) std::abort();
    if (!variable.value) continue;
    if (variable.value->find('\0') != std::string::npos) std::abort();
    if (variable.value->find('\n') != std::string::npos) std::abort();
    // Written out as a shell would quote it, it reads back.
    if (variable.value->find_first_of("'\r") != std::string::npos) continue;
    const std::string again = variable.name + "='" + *variable.value + "'";
    const auto reread = plan::ParseEnvFile(again, "f");
    if (!reread.ok() || reread->size() != 1 || *reread->front().value != *variable.value) {
      std::abort();
    }
  }
  return 0;
}
