#include "controller/nodes/remote_command.h"

#include <string_view>

namespace muster::nodes {
namespace {

// No ' ! \ or line break: see RemoteLine.
constexpr char kScript[] =
    "for p in \"$1\" musterd; do m=$(command -v \"$p\") && exec \"$m\" bridge --name \"$2\"; done; "
    "echo \"musterd is neither $1 nor in PATH=$PATH\" >&2; exit 127";

std::string Quote(std::string_view word) {
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

}  // namespace

std::vector<std::string> RemoteWords(const RemoteCommand& command) {
  return {"/bin/sh", "-c", kScript, "sh", command.musterd, command.name};
}

std::string RemoteLine(const RemoteCommand& command) {
  const bool safe = command.musterd.find_first_of("!\\\n\r") == std::string::npos;
  std::string line = "exec /bin/sh -c " + Quote(kScript) + " sh ";
  return line + Quote(safe ? command.musterd : "musterd") + " " + Quote(command.name);
}

}  // namespace muster::nodes
