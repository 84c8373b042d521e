#include "worker/stage/transfer.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/status.h"
#include "common/utf8.h"

namespace muster::stage {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr milliseconds kReportEvery(200);
constexpr int kReportsInSilence = 10;  // without news: every two seconds (stage.proto)

}  // namespace

Transfer::Transfer(std::string state_dir, Reporter report, milliseconds disk_patience)
    : state_dir_(std::move(state_dir)), report_(std::move(report)), disk_patience_(disk_patience) {}

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
  if (CheckOrder().ok() && !begin_.content_id().empty()) {
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
  Working();
  End(begin_.content_id().empty() ? PruneOnly() : RunSteps());
  Waiting();
  lock_.reset();
}

void Transfer::End(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    if (status_.state() >= v1::STAGE_STATE_DONE) return;  // its disk took too long
    status_.set_state(status.ok() ? v1::STAGE_STATE_DONE : v1::STAGE_STATE_FAILED);
    if (!status.ok()) status_.set_error(ToValidUtf8(std::string(status.message())));
  }
  ReportStatus();
}

void Transfer::Working() {
  working_since_ = SteadyClock::now().time_since_epoch().count();
}

void Transfer::Waiting() {
  working_since_ = 0;
}

void Transfer::CheckDisk() {
  const SteadyClock::duration since(working_since_.load());
  if (since.count() == 0 || SteadyClock::now().time_since_epoch() - since < disk_patience_) return;
  End(absl::DeadlineExceededError(
      absl::StrCat(state_dir_, ": the disk has not answered for ",
                   std::chrono::duration_cast<std::chrono::seconds>(disk_patience_).count(),
                   " s; is it a network file system whose server is gone? MUSTER_STATE names "
                   "another folder")));
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
  Working();
  const absl::Status written = files_->Write(number, piece.bytes);
  Waiting();
  MUSTER_RETURN_IF_ERROR(written);
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
  if (status_.state() >= v1::STAGE_STATE_DONE) return;  // it was given up
  status_.set_state(state);
  changed_ = true;
}

void Transfer::Tick() {
  for (int silent = 0; !stop_;) {
    std::this_thread::sleep_for(kReportEvery);
    bool changed = false;
    {
      absl::MutexLock lock(&mutex_);
      changed = std::exchange(changed_, false);
    }
    silent = changed ? 0 : silent + 1;
    if (silent % kReportsInSilence == 0) ReportStatus();
    CheckDisk();
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
