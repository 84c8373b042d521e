#pragma once

#include <sys/types.h>

#include <string>

namespace muster::facts {

// The name of a user on this machine, else the number. Reads /etc/passwd: a static program has no
// name service.
std::string UserName(uid_t uid);

}  // namespace muster::facts
