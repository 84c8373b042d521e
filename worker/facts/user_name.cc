#include "worker/facts/user_name.h"

#include <fstream>

namespace muster::facts {

std::string UserName(uid_t uid) {
  std::ifstream passwd("/etc/passwd");
  for (std::string line; std::getline(passwd, line);) {
    const size_t name = line.find(':');
    const size_t id = line.find(':', name + 1);
    if (name == std::string::npos || id == std::string::npos) continue;
    if (line.substr(id + 1, line.find(':', id + 1) - id - 1) == std::to_string(uid))
      return line.substr(0, name);
  }
  return std::to_string(uid);
}

}  // namespace muster::facts
