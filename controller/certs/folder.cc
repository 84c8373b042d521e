#include "controller/certs/folder.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace muster::certs {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Home() {
  if (std::string home = Variable("HOME"); home.starts_with('/')) return home;
  const passwd* user = getpwuid(getuid());
  return user != nullptr && user->pw_dir != nullptr ? user->pw_dir : "/";
}

}  // namespace

std::string DefaultFolder() {
  if (const std::string state = Variable("MUSTER_STATE"); !state.empty()) return state + "/tls";
  const std::string config = Variable("XDG_CONFIG_HOME");
  return (config.starts_with('/') ? config : Home() + "/.config") + "/muster/tls";
}

}  // namespace muster::certs
