#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "muster/v1/job.pb.h"

namespace muster::store {

// The secrets of jobs that have not ended: one file each, mode 0600, in `secrets/` (0700) of the
// state folder, so that a restarted controller can still start ranks. Never in the database, whose
// free pages would keep them. Engine thread only.
class Secrets {
 public:
  explicit Secrets(std::string state_dir) : folder_(std::move(state_dir) + "/secrets") {}

  // Durable when it returns. No file is made for a job without secrets.
  absl::Status Put(uint64_t job, const v1::JobSpec& spec);
  // Fills in the values of a masked spec. OK if it has no secrets; NotFound if their file is gone.
  absl::Status Restore(uint64_t job, v1::JobSpec& spec) const;
  // Also if there is none.
  void Remove(uint64_t job);

 private:
  std::string PathOf(uint64_t job) const;
  const std::string folder_;
};

// What a masked value looks like.
inline constexpr char kMask[] = "***";

// The spec with every secret's value masked; names stay.
v1::JobSpec Mask(v1::JobSpec spec);

}  // namespace muster::store
