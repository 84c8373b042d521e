#pragma once

#include <absl/synchronization/mutex.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controller/stage/scan.h"
#include "muster/v1/stage.pb.h"
#include "worker/stage/transfer.h"

// Trees in temporary folders, and nodes of one transfer in one process, with the test as
// controller.

namespace muster::stage {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// Makes parent folders too.
void Write(const std::string& path, std::string_view bytes);
std::string Read(const std::string& path);
// Bytes that look random and differ by seed.
std::string Noise(size_t size, uint32_t seed);
ScannedTree Scan(const std::string& folder);
// Every path below with its kind, mode, content or target: equal trees give equal texts.
std::string Listing(const std::string& folder);

// One worker. Pieces that it wants of the controller are read from `scanned` at once.
class TestNode {
 public:
  TestNode(std::string state_dir, const ScannedTree& scanned,
           std::chrono::milliseconds disk_patience = std::chrono::minutes(10));
  ~TestNode();

  v1::StageBegin begin;  // to be changed before Begin()
  // May change what the controller sends.
  std::function<void(uint32_t piece, std::string& bytes)> tamper;

  void Begin();
  void FetchFromController();
  void FetchFrom(const TestNode& peer);
  // What the controller sends though nobody asked for it.
  void Send(uint32_t piece, const std::string& bytes);
  // Ends it in the middle, as a killed process would be.
  void Kill();

  // Until the condition holds; false after a minute.
  bool WaitFor(const std::function<bool()>& condition);
  v1::StageStatus WaitForEnd();
  // The end of one that fetches from the controller.
  v1::StageStatus Run();
  uint64_t bytes_from_controller() const;
  std::vector<std::string> lost() const;
  v1::StageStatus status() const;
  uint64_t num_statuses() const;

 private:
  void Take(const v1::StageReport& report);
  void Order(v1::StageOrder order);

  const ScannedTree& scanned_;
  mutable absl::Mutex mutex_;
  v1::StageStatus status_ ABSL_GUARDED_BY(mutex_);
  uint32_t port_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t num_statuses_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t bytes_from_controller_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> lost_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint32_t> wanted_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Transfer> transfer_ ABSL_GUARDED_BY(mutex_);
  std::thread feeder_;
};

}  // namespace muster::stage
