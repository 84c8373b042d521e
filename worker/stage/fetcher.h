#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "muster/v1/stage.pb.h"
#include "worker/stage/piece_map.h"
#include "worker/stage/piece_source.h"

namespace muster::stage {

// Gets the pieces that are not here from the source that the controller names, in order, with a few
// on their way at a time; goes on with another source whenever the controller names one.
class Fetcher {
 public:
  struct Callbacks {
    // Takes a piece that came. DataLoss: it is not what was wanted; any other error ends Run.
    std::function<absl::Status(const Piece&)> take;
    // Asks the controller; any thread.
    std::function<void(uint32_t piece)> ask_controller;
    // The peer gives nothing (more): another source is wished for.
    std::function<void(uint32_t node, const std::string& error)> lost;
  };
  Fetcher(std::string key, PieceMap& pieces, Callbacks callbacks);

  // From now on from here. Any thread.
  void SetSource(const v1::StageSource& source);
  // What the controller sent. Any thread.
  void Deliver(Piece piece);
  // Run ends soon. Any thread.
  void Stop();

  // Until all pieces are here.
  absl::Status Run();

 private:
  struct Current {
    v1::StageSource order;
    std::shared_ptr<PieceSource> source;
  };
  std::shared_ptr<Current> Await();
  // Until all is here, or the source is used up: then why.
  absl::Status FetchFrom(PieceSource& source, absl::Status& fatal);

  const std::string key_;
  PieceMap& pieces_;
  const Callbacks callbacks_;
  absl::Mutex mutex_;
  std::shared_ptr<Current> current_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::stage
