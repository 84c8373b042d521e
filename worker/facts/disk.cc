#include <sys/statvfs.h>

#include "worker/facts/node_facts.h"

namespace muster::facts {

uint64_t DiskFreeBytes(const std::string& path) {
  struct statvfs fs;
  if (statvfs(path.c_str(), &fs) != 0) return 0;
  return static_cast<uint64_t>(fs.f_bavail) * fs.f_frsize;
}

}  // namespace muster::facts
