#include "controller/logs/fs_user.h"

#include <absl/synchronization/mutex.h>
#include <grp.h>
#include <pwd.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <utility>

namespace muster::logs {
namespace {

using Groups = std::vector<gid_t>;

Groups LookUp(uint32_t uid, uint32_t gid) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> text(16 << 10);
  if (getpwuid_r(uid, &entry, text.data(), text.size(), &found) != 0 || found == nullptr) {
    return {gid};
  }
  int count = 1024;
  Groups groups(static_cast<size_t>(count));
  if (getgrouplist(entry.pw_name, gid, groups.data(), &count) < 0) return {gid};
  groups.resize(static_cast<size_t>(count));
  return groups;
}

// Asked once a user: the answer may come over the network.
const Groups& GroupsOf(uint32_t uid, uint32_t gid) {
  static absl::Mutex mutex;
  static std::map<std::pair<uint32_t, uint32_t>, Groups> known;
  absl::MutexLock lock(&mutex);
  const auto found = known.find({uid, gid});
  if (found != known.end()) return found->second;
  return known.emplace(std::make_pair(uid, gid), LookUp(uid, gid)).first->second;
}

// The C library's setgroups changes all threads; the system call this one.
void SetGroups(const Groups& groups) {
  (void)syscall(SYS_setgroups, groups.size(), groups.data());
}

}  // namespace

ScopedFsUser::ScopedFsUser(uint32_t uid, uint32_t gid) {
  // Only root can change; for anybody else files belong to the process's user whatever was asked.
  if (geteuid() != 0 || (uid == 0 && gid == getegid())) return;
  const int count = getgroups(0, nullptr);
  own_groups_.resize(count > 0 ? static_cast<size_t>(count) : 0);
  (void)getgroups(count, own_groups_.data());
  SetGroups(GroupsOf(uid, gid));
  setfsgid(gid);  // before the uid, which takes the right to change away
  setfsuid(uid);
  active_ = true;
}

ScopedFsUser::~ScopedFsUser() {
  if (!active_) return;
  setfsuid(geteuid());
  setfsgid(getegid());
  SetGroups(own_groups_);
}

}  // namespace muster::logs
