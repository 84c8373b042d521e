#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "controller/nodes/ssh/target.h"
#include "tests/nodes/ssh/memory_source.h"

// Any bytes are an ssh configuration or an error. The input's parts between lines of "---" are the
// user's file, the system's, and two that they may include.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::nodes::ssh;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  MemorySource source;
  for (const char* path :
       {"/home/ada/.ssh/config", "/etc/ssh/ssh_config", "/home/ada/.ssh/a", "/home/ada/.ssh/b"}) {
    const size_t end = std::min(rest.find("\n---\n"), rest.size());
    source.files[path] = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 5, rest.size()));
  }
  source.environment = {{"SSH_AUTH_SOCK", "/sock"}, {"HOME", "/home/ada"}};
  for (const char* host : {"node1", "10.0.0.1"}) {
    const auto route = ResolveRoute({.host = host}, source);
    if (!route.ok()) {
      if (route.status().message().empty()) std::abort();
      continue;
    }
    if (route->empty()) std::abort();
    for (const Target& target : *route) {
      if (target.host.empty() || target.user.empty() || target.port == 0) std::abort();
      if (!IsSaneHost(target.host) || !IsSaneUser(target.user)) std::abort();
    }
  }
  return 0;
}
