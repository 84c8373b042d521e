#include "worker/facts/port_holder.h"

#include <dirent.h>
#include <unistd.h>

#include <string_view>

namespace muster::facts {
namespace {

bool HoldsSocket(pid_t pid, const std::string& link) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  DIR* dir = opendir(folder.c_str());
  if (dir == nullptr) return false;
  bool found = false;
  while (const dirent* entry = readdir(dir)) {
    char target[64];
    const ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof target);
    if (n > 0 && link == std::string_view(target, static_cast<size_t>(n))) {
      found = true;
      break;
    }
  }
  closedir(dir);
  return found;
}

}  // namespace

pid_t HolderOf(const TcpEntry& entry, const ProcReader& proc) {
  if (entry.inode == 0) return 0;
  const std::string link = "socket:[" + std::to_string(entry.inode) + "]";
  for (const pid_t pid : proc.Pids()) {
    if (HoldsSocket(pid, link)) return pid;
  }
  return 0;
}

std::string DescribeHolder(const TcpEntry& entry, const ProcReader& proc) {
  const pid_t pid = HolderOf(entry, proc);
  if (pid != 0) return "pid " + std::to_string(pid) + " (" + proc.Command(pid) + ")";
  return "a process of uid " + std::to_string(entry.uid);
}

}  // namespace muster::facts
