#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

namespace muster::ranks {

// The seam to cgroup2: one group per attempt keeps every process that a rank ever starts. Reactor
// thread only.
class Cgroups {
 public:
  virtual ~Cgroups() = default;
  // Makes the attempt's group (again, if it exists) and returns its folder; "" where cgroup2 is not
  // to be had.
  virtual std::string Create(const std::string& attempt_name) = 0;
  // Members of the group; empty if it is gone.
  virtual std::vector<pid_t> Members(const std::string& folder) = 0;
  // SIGKILL to all members at once.
  virtual void Kill(const std::string& folder) = 0;
  // Removes the empty group.
  virtual void Remove(const std::string& folder) = 0;
  // For people: "cgroup2 at /sys/fs/cgroup/unified/muster", or why there is none.
  virtual std::string Describe() const = 0;

  // Finds the cgroup2 mount in /proc/self/mountinfo and this process's own group in
  // /proc/self/cgroup, and tries for real whether groups can be made there, joined and killed by
  // cgroup.kill. Falls back to a Cgroups that has none.
  static std::unique_ptr<Cgroups> Detect();
  static std::unique_ptr<Cgroups> None(const std::string& why);
};

// The mount point of cgroup2 in the text of /proc/self/mountinfo; "" if there is none.
std::string FindCgroup2Mount(const std::string& mountinfo);
// The cgroup2 path in the text of /proc/self/cgroup ("0::/user.slice/x"); "" if there is none.
std::string FindOwnCgroup2(const std::string& cgroup);

}  // namespace muster::ranks
