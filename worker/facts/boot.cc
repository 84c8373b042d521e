#include <fcntl.h>
#include <unistd.h>

#include "common/unique_fd.h"
#include "worker/facts/node_facts.h"

namespace muster::facts {

std::string BootId() {
  const UniqueFd fd(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[64];
  const ssize_t n = fd ? read(fd.get(), text, sizeof text) : -1;
  std::string id(text, n > 0 ? static_cast<size_t>(n) : 0);
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

}  // namespace muster::facts
