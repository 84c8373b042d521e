#include "worker/stage/transfer.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <algorithm>
#include <chrono>
#include <utility>

#include "common/status.h"
#include "common/utf8.h"
#include "worker/stage/files.h"
#include "worker/stage/versions.h"

namespace muster::stage {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kReportEvery(200);
constexpr milliseconds kLockPause(100);
constexpr int kMostDamaged = 100;
constexpr int kVerifyRounds = 3;
constexpr uint64_t kBlock = 4096;  // what a small file takes on the disk
constexpr uint64_t kSpareBytes = uint64_t{16} << 20;

std::string MiB(uint64_t bytes) {
  return absl::StrCat((bytes >> 20) + (bytes % (1 << 20) != 0 ? 1 : 0), " MiB");
}

}  // namespace

Transfer::Transfer(std::string state_dir, Reporter report)
    : state_dir_(std::move(state_dir)), report_(std::move(report)) {}

Transfer::~Transfer() {
  stop_ = true;
  if (pieces_) pieces_->Stop();
  if (fetcher_) fetcher_->Stop();
  if (thread_.joinable()) thread_.join();
  if (ticker_.joinable()) ticker_.join();
  server_.reset();
}

void Transfer::Take(const v1::StageOrder& order) {
  if (order.has_begin()) {
    if (id_ == 0) {
      id_ = order.transfer();
      Begin(order.begin());
    }
    v1::StageReport report;
    *report.mutable_listening() = listening_;
    Report(std::move(report));
    ReportStatus();
  } else if (fetcher_ != nullptr && order.has_source()) {
    fetcher_->SetSource(order.source());
  } else if (fetcher_ != nullptr && order.has_data()) {
    fetcher_->Deliver({order.data().piece(), order.data().data()});
  }
}

void Transfer::Begin(const v1::StageBegin& begin) {
  begin_ = begin;
  SetState(v1::STAGE_STATE_READING);
  if (IsContentId(begin_.content_id()) && begin_.manifest_bytes() <= kMaxManifestBytes) {
    layout_.emplace(state_dir_, begin_.content_id());
    pieces_ = std::make_unique<PieceMap>(ManifestPieces());
    {
      absl::MutexLock lock(&mutex_);
      manifest_.resize(ManifestPieces());
      status_.set_path(layout_->version);
    }
    const auto ask = [this](uint32_t piece) {
      v1::StageReport report;
      report.mutable_want()->add_pieces(piece);
      Report(std::move(report));
    };
    const auto lost = [this](uint32_t node, const std::string& error) {
      v1::StageReport report;
      report.mutable_lost()->set_node(node);
      report.mutable_lost()->set_error(ToValidUtf8(error));
      Report(std::move(report));
    };
    fetcher_ = std::make_unique<Fetcher>(
        begin_.key(), *pieces_,
        Fetcher::Callbacks{[this](const Piece& piece) { return TakePiece(piece); }, ask, lost});
    Listen();
  }
  thread_ = std::thread([this] { Run(); });
  ticker_ = std::thread([this] { Tick(); });
}

void Transfer::Listen() {
  auto server = PeerServer::Listen(begin_.listen_address(), begin_.first_port(), begin_.last_port(),
                                   begin_.key(), *pieces_,
                                   [this](uint32_t piece) { return ReadPiece(piece); });
  if (!server.ok()) {
    listening_.set_error(ToValidUtf8(std::string(server.status().message())));
    return;
  }
  server_ = *std::move(server);
  listening_.set_port(server_->port());
}

uint32_t Transfer::ManifestPieces() const {
  return static_cast<uint32_t>(PiecesOf(begin_.manifest_bytes()));
}

void Transfer::Run() {
  const absl::Status status = begin_.content_id().empty() ? PruneOnly() : RunSteps();
  {
    absl::MutexLock lock(&mutex_);
    if (!status.ok()) status_.set_error(ToValidUtf8(std::string(status.message())));
  }
  SetState(status.ok() ? v1::STAGE_STATE_DONE : v1::STAGE_STATE_FAILED);
  ReportStatus();
  lock_.reset();
}

absl::Status Transfer::PruneOnly() {
  const Pruned pruned =
      Prune(state_dir_, 0, {begin_.in_use().begin(), begin_.in_use().end()}, true);
  absl::MutexLock lock(&mutex_);
  status_.mutable_pruned()->Add(pruned.removed.begin(), pruned.removed.end());
  for (const std::string& why : pruned.kept) status_.add_kept(ToValidUtf8(why));
  return absl::OkStatus();
}

absl::Status Transfer::RunSteps() {
  if (!IsContentId(begin_.content_id()))
    return absl::InvalidArgumentError("'" + begin_.content_id() + "' is no content id");
  if (!layout_) {
    return absl::InvalidArgumentError(absl::StrCat("a manifest of ", MiB(begin_.manifest_bytes()),
                                                   "; at most ", MiB(kMaxManifestBytes),
                                                   " are taken: stage parts of the tree"));
  }
  MUSTER_RETURN_IF_ERROR(MakeFolders(layout_->root));
  // The same tree may be on its way from another controller: then it will be there soon.
  auto lock = LockFile(layout_->lock);
  while (absl::IsUnavailable(lock.status()) && !stop_) {
    std::this_thread::sleep_for(kLockPause);
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
    MUSTER_RETURN_IF_ERROR(fetcher_->Run());
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
    MUSTER_RETURN_IF_ERROR(fetcher_->Run());
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
  std::set<std::string> in_use(begin_.in_use().begin(), begin_.in_use().end());
  in_use.insert(begin_.content_id());
  const Pruned pruned = Prune(state_dir_, begin_.keep(), in_use, false);
  absl::MutexLock lock(&mutex_);
  status_.mutable_pruned()->Add(pruned.removed.begin(), pruned.removed.end());
  for (const std::string& why : pruned.kept) status_.add_kept(ToValidUtf8(why));
  return absl::OkStatus();
}

absl::Status Transfer::TakePiece(const Piece& piece) {
  const uint32_t manifest = ManifestPieces();
  if (piece.number < manifest) {
    // It has been checked as a whole by now; what is sent again is not looked at.
    if (tree_ != nullptr) return absl::OkStatus();
    const uint64_t size =
        std::min(kPieceBytes, begin_.manifest_bytes() - piece.number * kPieceBytes);
    if (piece.bytes.size() != size) return absl::DataLossError("it sent a damaged manifest");
    {
      absl::MutexLock lock(&mutex_);
      manifest_[piece.number] = piece.bytes;
    }
    pieces_->Set(piece.number, true);
    return absl::OkStatus();
  }
  const uint32_t number = piece.number - manifest;
  if (tree_ == nullptr || number >= tree_->num_pieces())
    return absl::DataLossError("it sent a piece that nobody asked for");
  if (!Matches(*tree_, number, piece.bytes)) {
    return absl::DataLossError("it sent other content for " +
                               ToValidUtf8(tree_->entry(tree_->Locate(number).entry).path()));
  }
  MUSTER_RETURN_IF_ERROR(files_->Write(number, piece.bytes));
  to_verify_.push_back(number);
  bytes_fetched_ += piece.bytes.size();
  pieces_->Set(piece.number, true);
  absl::MutexLock lock(&mutex_);
  changed_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::string> Transfer::ReadPiece(uint32_t piece) const {
  if (piece >= ManifestPieces()) return files_->Read(piece - ManifestPieces());
  absl::MutexLock lock(&mutex_);
  return manifest_[piece];
}

void Transfer::SetState(v1::StageState state) {
  absl::MutexLock lock(&mutex_);
  status_.set_state(state);
  changed_ = true;
}

void Transfer::Tick() {
  while (!stop_) {
    std::this_thread::sleep_for(kReportEvery);
    bool changed = false;
    {
      absl::MutexLock lock(&mutex_);
      changed = std::exchange(changed_, false);
    }
    if (changed) ReportStatus();
  }
}

void Transfer::ReportStatus() {
  v1::StageReport report;
  v1::StageStatus& status = *report.mutable_status();
  {
    absl::MutexLock lock(&mutex_);
    status = status_;
  }
  if (pieces_) status.set_pieces(pieces_->count());
  status.set_bytes_had(bytes_had_);
  status.set_bytes_fetched(bytes_fetched_);
  const uint64_t here = status.bytes_had() + status.bytes_fetched();
  status.set_bytes_missing(tree_bytes_ - std::min(here, tree_bytes_.load()));
  if (server_) status.set_bytes_given(server_->bytes_given());
  Report(std::move(report));
}

void Transfer::Report(v1::StageReport report) const {
  report.set_transfer(id_);
  report_(std::move(report));
}

}  // namespace muster::stage
