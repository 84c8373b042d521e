#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace muster::logs {

// Lets this thread act on files as another user, with that user's groups, while it lives, so that a
// controller that runs as root makes files that belong to the submitter and can't be led astray by
// links in the submitter's folders. Does nothing when the process runs as that user already. One
// thread.
class ScopedFsUser {
 public:
  ScopedFsUser(uint32_t uid, uint32_t gid);
  ~ScopedFsUser();
  ScopedFsUser(const ScopedFsUser&) = delete;
  ScopedFsUser& operator=(const ScopedFsUser&) = delete;

 private:
  bool active_ = false;
  std::vector<gid_t> own_groups_;
};

}  // namespace muster::logs
