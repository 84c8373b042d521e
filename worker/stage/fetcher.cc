#include "worker/stage/fetcher.h"

#include <utility>

namespace muster::stage {

Fetcher::Fetcher(std::string key, PieceMap& pieces, Callbacks callbacks)
    : key_(std::move(key)), pieces_(pieces), callbacks_(std::move(callbacks)) {}

void Fetcher::SetSource(const v1::StageSource& source) {
  auto next = std::make_shared<Current>();
  next->order = source;
  if (source.address().empty()) {
    next->source = std::make_shared<ControllerSource>(callbacks_.ask_controller);
  } else {
    next->source = std::make_shared<PeerSource>(source.address(), source.port(), key_);
  }
  absl::MutexLock lock(&mutex_);
  if (current_) current_->source->Close();
  current_ = std::move(next);
}

void Fetcher::Deliver(Piece piece) {
  absl::MutexLock lock(&mutex_);
  // Of a source that was replaced meanwhile: it is asked for again.
  auto* const controller =
      current_ ? dynamic_cast<ControllerSource*>(current_->source.get()) : nullptr;
  if (controller != nullptr) controller->Deliver(std::move(piece));
}

void Fetcher::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  if (current_) current_->source->Close();
}

std::shared_ptr<Fetcher::Current> Fetcher::Await() {
  const auto ready = [this] {
    mutex_.AssertReaderHeld();
    return stopped_ || current_ != nullptr;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&ready));
  return stopped_ ? nullptr : current_;
}

absl::Status Fetcher::Run() {
  while (!pieces_.Complete()) {
    const std::shared_ptr<Current> current = Await();
    if (current == nullptr) return absl::CancelledError("the transfer was ended");
    absl::Status fatal = absl::OkStatus();
    const absl::Status ended = FetchFrom(*current->source, fatal);
    if (!fatal.ok()) return fatal;
    if (ended.ok()) continue;
    bool replaced = false;
    {
      absl::MutexLock lock(&mutex_);
      replaced = current_ != current;
      if (!replaced) current_.reset();
    }
    if (!replaced) callbacks_.lost(current->order.node(), std::string(ended.message()));
  }
  return absl::OkStatus();
}

absl::Status Fetcher::FetchFrom(PieceSource& source, absl::Status& fatal) {
  uint32_t next = 0;
  size_t under_way = 0;
  while (true) {
    while (under_way < source.Window()) {
      const auto missing = pieces_.NextMissing(next);
      if (!missing) break;
      if (absl::Status asked = source.Want(*missing); !asked.ok()) return asked;
      next = *missing + 1;
      ++under_way;
    }
    if (under_way == 0) return absl::OkStatus();
    absl::StatusOr<Piece> piece = source.Next();
    if (!piece.ok()) return piece.status();
    --under_way;
    absl::Status taken = callbacks_.take(*piece);
    if (absl::IsDataLoss(taken)) return taken;
    if (!taken.ok()) {
      fatal = taken;
      return taken;
    }
  }
}

}  // namespace muster::stage
