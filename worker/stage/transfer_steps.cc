// What the thread of a Transfer does, from the order to the version that is visible.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/status.h"
#include "common/utf8.h"
#include "worker/stage/files.h"
#include "worker/stage/prune.h"
#include "worker/stage/transfer.h"
#include "worker/stage/versions.h"

namespace muster::stage {
namespace {

constexpr std::chrono::milliseconds kLockPause(100);
constexpr int kMostDamaged = 100;
constexpr int kVerifyRounds = 3;
constexpr uint64_t kBlock = 4096;  // what a small file takes on the disk
constexpr uint64_t kSpareBytes = uint64_t{16} << 20;

std::string MiB(uint64_t bytes) {
  return absl::StrCat((bytes >> 20) + (bytes % (1 << 20) != 0 ? 1 : 0), " MiB");
}

}  // namespace

absl::Status Transfer::RunFetcher() {
  Waiting();
  absl::Status status = fetcher_->Run();
  Working();
  return status;
}

absl::Status Transfer::PruneOnly() {
  const Pruned pruned = Prune(state_dir_, 0, "", true);
  absl::MutexLock lock(&mutex_);
  status_.mutable_pruned()->Add(pruned.removed.begin(), pruned.removed.end());
  for (const std::string& why : pruned.kept) status_.add_kept(ToValidUtf8(why));
  return absl::OkStatus();
}

absl::Status Transfer::CheckOrder() const {
  if (begin_.content_id().empty()) return absl::OkStatus();  // only prune
  if (!IsContentId(begin_.content_id()))
    return absl::InvalidArgumentError("'" + begin_.content_id() + "' is no content id");
  if (begin_.manifest_bytes() > kMaxManifestBytes) return Tree::TooLarge(begin_.manifest_bytes());
  return absl::OkStatus();
}

absl::Status Transfer::RunSteps() {
  MUSTER_RETURN_IF_ERROR(CheckOrder());
  // At once, and not when all bytes have come.
  if (!begin_.link_path().empty()) MUSTER_RETURN_IF_ERROR(CheckLink(begin_.link_path()));
  MUSTER_RETURN_IF_ERROR(MakeFolders(layout_->root));
  // The same tree may be on its way from another controller: then it will be there soon.
  auto lock = LockFile(layout_->lock);
  while (absl::IsUnavailable(lock.status()) && !stop_) {
    Waiting();
    std::this_thread::sleep_for(kLockPause);
    Working();
    lock = LockFile(layout_->lock);
  }
  MUSTER_RETURN_IF_ERROR(lock.status());
  lock_ = *std::move(lock);
  MUSTER_RETURN_IF_ERROR(LearnManifest());
  MUSTER_RETURN_IF_ERROR(TakeStock());
  if (begin_.dry_run()) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(Fetch());
  return Publish();
}

absl::Status Transfer::LearnManifest() {
  // A version that is here has it.
  auto bytes = ReadFile(layout_->manifest, kMaxManifestBytes);
  if (bytes.ok() && bytes->size() == begin_.manifest_bytes() &&
      Tree::ContentId(*bytes) == begin_.content_id()) {
    manifest_on_disk_ = true;
    absl::MutexLock lock(&mutex_);
    for (size_t i = 0; i < manifest_.size(); ++i) {
      manifest_[i] = bytes->substr(i * kPieceBytes, kPieceBytes);
      pieces_->Set(static_cast<uint32_t>(i), true);
    }
  } else {
    MUSTER_RETURN_IF_ERROR(RunFetcher());
    absl::MutexLock lock(&mutex_);
    bytes = absl::StrJoin(manifest_, "");
  }
  if (Tree::ContentId(*bytes) != begin_.content_id())
    return absl::DataLossError("the manifest that came is not that of the tree");
  MUSTER_ASSIGN_OR_RETURN(Tree tree, Tree::Parse(*bytes));
  tree_bytes_ = tree.bytes();
  tree_ = std::make_unique<Tree>(std::move(tree));
  files_ = std::make_unique<TreeFiles>(*tree_, *layout_);
  pieces_->Grow(ManifestPieces() + tree_->num_pieces());
  return absl::OkStatus();
}

absl::Status Transfer::TakeStock() {
  StockOptions options{.verify = begin_.verify(), .changes = !begin_.dry_run(), .stop = &stop_};
  for (const Version& version : ListVersions(state_dir_)) {
    if (version.content_id != begin_.content_id()) options.other_versions.push_back(version.folder);
  }
  options.progress = [this](uint64_t bytes) {
    Working();
    bytes_had_ = bytes;
    absl::MutexLock lock(&mutex_);
    changed_ = true;
  };
  MUSTER_RETURN_IF_ERROR(LookAtVersion(*tree_, *files_, options, stock_));
  if (!files_->has_version() || !stock_.damaged.empty()) {
    if (!begin_.dry_run()) {
      MUSTER_RETURN_IF_ERROR(CheckSpace());
      MUSTER_RETURN_IF_ERROR(files_->Prepare());
    }
    MUSTER_RETURN_IF_ERROR(CollectPieces(*tree_, *files_, options, stock_));
  }
  for (uint32_t i = 0; i < tree_->num_pieces(); ++i) {
    if (!stock_.pieces[i]) continue;
    pieces_->Set(ManifestPieces() + i, !begin_.dry_run());
    if (!files_->IsGood(tree_->Locate(i).entry)) to_verify_.push_back(i);
  }
  absl::MutexLock lock(&mutex_);
  for (const std::string& text : stock_.damaged) {
    if (status_.damaged_size() < kMostDamaged) status_.add_damaged(ToValidUtf8(text));
  }
  status_.set_num_damaged(static_cast<uint32_t>(stock_.damaged.size()));
  return absl::OkStatus();
}

absl::Status Transfer::CheckSpace() const {
  uint64_t needed = kSpareBytes;
  for (size_t i = 0; i < tree_->num_entries(); ++i) {
    const uint64_t size = tree_->entry(i).size();
    if (files_->IsGood(i)) continue;
    // What an interrupted transfer left takes its room already.
    const auto left = ReadableSize(files_->PartialPath(i));
    needed += (size - std::min(left, size) + kBlock) / kBlock * kBlock;
  }
  MUSTER_ASSIGN_OR_RETURN(const uint64_t free, FreeBytes(layout_->root));
  if (free >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      layout_->root, ": ", MiB(needed), " are needed, ", MiB(free),
      " are free; make room, remove old versions with `muster stage --prune`, or let MUSTER_STATE "
      "name a folder on a larger disk"));
}

absl::Status Transfer::Fetch() {
  for (int round = 1;; ++round) {
    SetState(v1::STAGE_STATE_FETCHING);
    MUSTER_RETURN_IF_ERROR(RunFetcher());
    SetState(v1::STAGE_STATE_VERIFYING);
    std::vector<uint32_t> bad;
    MUSTER_RETURN_IF_ERROR(VerifyWritten(bad));
    if (bad.empty()) return absl::OkStatus();
    if (round == kVerifyRounds) {
      return absl::DataLossError(
          absl::StrCat(files_->PartialPath(tree_->Locate(bad.front()).entry),
                       " reads back other than it was written: is the disk of this host sound?"));
    }
    for (const uint32_t piece : bad) pieces_->Set(ManifestPieces() + piece, false);
  }
}

absl::Status Transfer::VerifyWritten(std::vector<uint32_t>& bad) {
  for (const uint32_t piece : std::exchange(to_verify_, {})) {
    if (stop_) return absl::CancelledError("the transfer was ended");
    Working();
    const auto bytes = files_->Read(piece);
    if (absl::IsDataLoss(bytes.status()) || absl::IsOutOfRange(bytes.status())) {
      bad.push_back(piece);
    } else if (!bytes.ok()) {
      return bytes.status();
    }
  }
  return absl::OkStatus();
}

absl::Status Transfer::Publish() {
  if (!files_->has_version() || !stock_.damaged.empty()) MUSTER_RETURN_IF_ERROR(files_->Publish());
  if (!manifest_on_disk_) {
    std::string manifest;
    {
      absl::MutexLock lock(&mutex_);
      manifest = absl::StrJoin(manifest_, "");
    }
    MUSTER_RETURN_IF_ERROR(WriteFileAtomically(layout_->manifest, manifest));
  }
  Touch(*layout_);
  if (!begin_.link_path().empty()) MUSTER_RETURN_IF_ERROR(SwitchLink(*layout_, begin_.link_path()));
  if (begin_.keep() == 0) return absl::OkStatus();
  const Pruned pruned = Prune(state_dir_, begin_.keep(), begin_.content_id(), false);
  absl::MutexLock lock(&mutex_);
  status_.mutable_pruned()->Add(pruned.removed.begin(), pruned.removed.end());
  for (const std::string& why : pruned.kept) status_.add_kept(ToValidUtf8(why));
  return absl::OkStatus();
}

}  // namespace muster::stage
