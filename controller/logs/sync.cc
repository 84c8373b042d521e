#include "controller/logs/sync.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "common/status.h"
#include "controller/logs/file_io.h"

namespace muster::logs {
namespace {

constexpr size_t kThreads = 16;

void Sync(SyncJob& job) {
  if (fdatasync(job.fd->get()) != 0) job.status = PosixError("sync " + job.path);
  if (!job.folder.empty()) job.status.Update(SyncDir(job.folder));
}

}  // namespace

void SyncAll(const std::vector<SyncJob*>& jobs) {
  std::atomic<size_t> next{0};
  const auto work = [&jobs, &next] {
    for (size_t i = next++; i < jobs.size(); i = next++) Sync(*jobs[i]);
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min(kThreads, jobs.size()); ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace muster::logs
