#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "controller/hostfile/hostfile.h"

// Any bytes are a hostfile or errors with lines; the same for a --host list.

namespace {

using muster::hostfile::Result;

void Check(const Result& result, const std::string& source) {
  if (result.ok() != (result.inventory.hosts_size() > 0)) std::abort();
  if (result.errors.size() > 20) std::abort();
  for (const auto& error : result.errors) {
    if (error.message.empty() || error.other_line > error.line) std::abort();
  }
  // 65,536 hosts with 4096 devices each are legal and slow to print.
  if (result.inventory.hosts_size() < 1000) muster::hostfile::ToJson(result);
  muster::hostfile::FormatErrors(source, result.errors);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Check(muster::hostfile::ParseHostfile(bytes), "hosts");
  Check(muster::hostfile::ParseHostList(bytes), "--host");
  return 0;
}
