#include "controller/logs/fs_user.h"

#include <sys/fsuid.h>
#include <unistd.h>

namespace muster::logs {

ScopedFsUser::ScopedFsUser(uint32_t uid, uint32_t gid) {
  // Only root can change; for anybody else files belong to the process's user whatever was asked.
  if (geteuid() != 0 || (uid == 0 && gid == getegid())) return;
  setfsgid(gid);  // before the uid, which takes the right to change away
  setfsuid(uid);
  active_ = true;
}

ScopedFsUser::~ScopedFsUser() {
  if (!active_) return;
  setfsuid(geteuid());
  setfsgid(getegid());
}

}  // namespace muster::logs
