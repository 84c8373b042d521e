#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/tree.h"
#include "muster/v1/stage.pb.h"
#include "worker/stage/fetcher.h"
#include "worker/stage/layout.h"
#include "worker/stage/peer_server.h"
#include "worker/stage/piece_map.h"
#include "worker/stage/stock.h"
#include "worker/stage/tree_files.h"

namespace muster::stage {

// One node's part in one transfer: learns the manifest, finds what is here, fetches the rest,
// checks and publishes it, and passes pieces on all the while and after. Lives in a process of its
// own (helper_main.h). Orders come from one thread; reports go out from several.
class Transfer {
 public:
  // `report` may be called on any thread, also at once; it must not block for long.
  using Reporter = std::function<void(v1::StageReport)>;
  // A disk that takes longer than `disk_patience` for one step ends the transfer.
  Transfer(std::string state_dir, Reporter report,
           std::chrono::milliseconds disk_patience = std::chrono::minutes(10));
  // Stops and waits for everything.
  ~Transfer();

  // An order of the controller; repeated ones are answered again.
  void Take(const v1::StageOrder& order);

 private:
  void Begin(const v1::StageBegin& begin);
  // Whether the order that began it makes sense.
  absl::Status CheckOrder() const;
  void Listen();
  void Run();
  absl::Status RunSteps();
  // The first one counts. Any thread.
  void End(const absl::Status& status);
  // The running thread waits for the disk from now on, or for something else.
  void Working();
  void Waiting();
  void CheckDisk();
  absl::Status RunFetcher();
  absl::Status PruneOnly();
  absl::Status LearnManifest();
  absl::Status TakeStock();
  absl::Status CheckSpace() const;
  absl::Status Fetch();
  absl::Status VerifyWritten(std::vector<uint32_t>& bad);
  absl::Status Publish();

  absl::Status TakePiece(const Piece& piece);
  absl::StatusOr<std::string> ReadPiece(uint32_t piece) const;
  uint32_t ManifestPieces() const;
  void SetState(v1::StageState state);
  void Tick();
  void ReportStatus();
  void Report(v1::StageReport report) const;

  const std::string state_dir_;
  const Reporter report_;
  const std::chrono::milliseconds disk_patience_;
  uint64_t id_ = 0;
  v1::StageBegin begin_;
  std::optional<Layout> layout_;
  std::unique_ptr<PieceMap> pieces_;
  std::unique_ptr<Fetcher> fetcher_;
  std::unique_ptr<PeerServer> server_;
  v1::StageListening listening_;
  std::thread thread_;
  std::thread ticker_;
  std::atomic<bool> stop_{false};
  std::atomic<std::chrono::steady_clock::rep> working_since_{0};  // 0: it waits for no disk
  std::atomic<uint64_t> tree_bytes_{0};
  std::atomic<uint64_t> bytes_had_{0};
  std::atomic<uint64_t> bytes_fetched_{0};

  UniqueFd lock_;                     // of the version; the running thread's
  bool manifest_on_disk_ = false;     // likewise
  std::vector<uint32_t> to_verify_;   // pieces that were written; the running thread's
  std::unique_ptr<Tree> tree_;        // set before its pieces are known to pieces_
  std::unique_ptr<TreeFiles> files_;  // likewise
  Stock stock_;

  mutable absl::Mutex mutex_;
  std::vector<std::string> manifest_ ABSL_GUARDED_BY(mutex_);  // by piece
  v1::StageStatus status_ ABSL_GUARDED_BY(mutex_);
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::stage
