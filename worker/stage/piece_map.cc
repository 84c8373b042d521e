#include "worker/stage/piece_map.h"

namespace muster::stage {

void PieceMap::Grow(uint32_t size) {
  absl::MutexLock lock(&mutex_);
  if (size > have_.size()) have_.resize(size, false);
}

void PieceMap::Set(uint32_t piece, bool here) {
  absl::MutexLock lock(&mutex_);
  if (have_[piece] == here) return;
  have_[piece] = here;
  if (here) {
    ++count_;
  } else {
    --count_;
  }
}

uint32_t PieceMap::size() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<uint32_t>(have_.size());
}

uint32_t PieceMap::count() const {
  absl::MutexLock lock(&mutex_);
  return count_;
}

bool PieceMap::Complete() const {
  absl::MutexLock lock(&mutex_);
  return count_ == have_.size();
}

std::optional<uint32_t> PieceMap::NextMissing(uint32_t from) const {
  absl::MutexLock lock(&mutex_);
  for (size_t i = from; i < have_.size(); ++i) {
    if (!have_[i]) return static_cast<uint32_t>(i);
  }
  return std::nullopt;
}

PieceMap::Wait PieceMap::WaitFor(uint32_t piece, std::chrono::milliseconds limit) const {
  const auto ready = [this, piece] {
    mutex_.AssertReaderHeld();
    return stopped_ || (piece < have_.size() && have_[piece]);
  };
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&ready), absl::FromChrono(limit));
  if (stopped_) return Wait::kStopped;
  return piece < have_.size() && have_[piece] ? Wait::kHere : Wait::kNotYet;
}

void PieceMap::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

}  // namespace muster::stage
