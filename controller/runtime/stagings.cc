#include "controller/runtime/stagings.h"

#include <sys/random.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "common/status.h"
#include "controller/stage/piece_reader.h"
#include "controller/stage/scan.h"

namespace muster::runtime {
namespace {

constexpr size_t kKeyBytes = 32;  // stage.proto

absl::StatusOr<std::string> RandomBytes(size_t size) {
  std::string bytes(size, '\0');
  if (::getrandom(bytes.data(), size, 0) != static_cast<ssize_t>(size))
    return PosixError("getrandom");
  return bytes;
}

absl::Status CheckRequest(const v1::StageRequest& request) {
  if (request.inventory().hosts().empty())
    return absl::InvalidArgumentError("stage where? Give --hostfile or --host");
  for (const std::string& path : request.paths()) {
    if (!path.starts_with('/')) return absl::InvalidArgumentError(path + ": not absolute");
  }
  const std::string& link = request.link_path();
  if (!link.empty() && !link.starts_with('/'))
    return absl::InvalidArgumentError("--to " + link + ": not absolute");
  const std::string name = link.substr(link.rfind('/') + 1);
  if (!link.empty() && (name.empty() || name == "." || name == ".."))
    return absl::InvalidArgumentError("--to " + link + ": the link needs a name of its own");
  // Hosts keep the paths of links one a line.
  if (std::any_of(link.begin(), link.end(), [](char c) { return c >= 0 && c < ' '; }))
    return absl::InvalidArgumentError(
        "--to: a path with a line's end or another control character");
  return absl::OkStatus();
}

}  // namespace

// One transfer, from the first byte read to the subscription's end.
class Stagings::Staging : public std::enable_shared_from_this<Staging> {
 public:
  Staging(const Hooks& hooks, uint64_t id, v1::StageRequest request,
          api::Backend::StageCallback callback)
      : hooks_(hooks), id_(id), request_(std::move(request)), callback_(std::move(callback)) {}

  ~Staging() {
    if (thread_.joinable()) thread_.join();
  }

  void Start() {
    thread_ = std::thread([this] { Run(); });
  }

  // No callback is running or comes after it.
  void End() {
    stop_ = true;
    {
      absl::MutexLock lock(&mutex_);
      callback_ = nullptr;
    }
    if (thread_.joinable()) thread_.join();
    // After the request, which the thread may have posted a moment ago.
    hooks_.post([handle = hooks_.handle, id = id_] {
      handle(engine::StageBroken{id, absl::CancelledError("the client has left")});
    });
    std::unique_ptr<stage::PieceReader> reader;  // ends outside of the lock
    absl::MutexLock lock(&mutex_);
    reader.swap(reader_);
  }

  void Tell(const absl::StatusOr<v1::StageResponse>& news) {
    absl::MutexLock lock(&mutex_);
    if (callback_) callback_(news);
  }

  void SendPiece(const std::string& host, uint32_t piece) {
    absl::MutexLock lock(&mutex_);
    if (reader_) reader_->Want(host, piece);
  }

 private:
  void Run() {
    if (const absl::Status status = Prepare(); !status.ok() && !stop_) Tell(status);
  }

  absl::Status Prepare() {
    engine::StageRequested requested;
    stage::StageRun& run = requested.run;
    run.id = id_;
    run.request = request_;
    MUSTER_ASSIGN_OR_RETURN(run.key, RandomBytes(kKeyBytes));
    MUSTER_ASSIGN_OR_RETURN(const std::string number, RandomBytes(sizeof run.transfer));
    std::copy(number.begin(), number.end(), reinterpret_cast<char*>(&run.transfer));
    for (const v1::Host& host : request_.inventory().hosts()) run.nodes.emplace_back().host = host;
    if (request_.paths_size() > 0) {
      MUSTER_ASSIGN_OR_RETURN(
          stage::ScannedTree scanned,
          stage::ScanTree({request_.paths().begin(), request_.paths().end()}, stop_));
      const auto tree = std::make_shared<const stage::ScannedTree>(std::move(scanned));
      run.content_id = Tree::ContentId(tree->manifest);
      run.manifest_bytes = tree->manifest.size();
      run.pieces = static_cast<uint32_t>(PiecesOf(tree->manifest.size())) + tree->tree.num_pieces();
      run.files = tree->tree.files();
      run.bytes = tree->tree.bytes();
      run.ignored = tree->ignored;
      auto reader = std::make_unique<stage::PieceReader>(
          tree, [this, transfer = run.transfer](const std::string& host, uint32_t piece,
                                                absl::StatusOr<std::string> bytes) {
            OnPiece(transfer, host, piece, std::move(bytes));
          });
      absl::MutexLock lock(&mutex_);
      reader_ = std::move(reader);
    }
    const bool posted = hooks_.post(
        [handle = hooks_.handle, requested = std::move(requested)] { handle(requested); });
    return posted ? absl::OkStatus() : absl::UnavailableError("the controller is shutting down");
  }

  // On the reader's thread.
  void OnPiece(uint64_t transfer, const std::string& host, uint32_t piece,
               absl::StatusOr<std::string> bytes) {
    if (!bytes.ok()) {
      hooks_.post([handle = hooks_.handle, id = id_, why = bytes.status()] {
        handle(engine::StageBroken{id, why});
      });
      return;
    }
    const uint64_t size = bytes->size();
    v1::AttachRequest message;
    message.mutable_stage()->set_transfer(transfer);
    message.mutable_stage()->mutable_data()->set_piece(piece);
    *message.mutable_stage()->mutable_data()->mutable_data() = *std::move(bytes);
    hooks_.post([send = hooks_.send, handle = hooks_.handle, id = id_, host, size,
                 message = std::move(message)] {
      send(host, message);
      handle(engine::PieceSent{id, host, size});
    });
  }

  const Hooks& hooks_;
  const uint64_t id_;
  const v1::StageRequest request_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
  absl::Mutex mutex_;
  api::Backend::StageCallback callback_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<stage::PieceReader> reader_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<api::Backend::Subscription>> Stagings::Begin(
    const v1::StageRequest& request, api::Backend::StageCallback callback) {
  MUSTER_RETURN_IF_ERROR(CheckRequest(request));
  class Ending : public api::Backend::Subscription {
   public:
    Ending(Stagings& all, uint64_t id, std::shared_ptr<Staging> staging)
        : all_(all), id_(id), staging_(std::move(staging)) {}
    ~Ending() override {
      all_.Forget(id_);
      staging_->End();
    }

   private:
    Stagings& all_;
    const uint64_t id_;
    const std::shared_ptr<Staging> staging_;
  };
  const uint64_t id = engine::kFirstStaging + ++last_id_;
  const auto staging = std::make_shared<Staging>(hooks_, id, request, std::move(callback));
  {
    absl::MutexLock lock(&mutex_);
    running_[id] = staging;
  }
  staging->Start();
  return std::make_unique<Ending>(*this, id, staging);
}

std::shared_ptr<Stagings::Staging> Stagings::Find(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  const auto it = running_.find(id);
  return it == running_.end() ? nullptr : it->second.lock();
}

void Stagings::Forget(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  running_.erase(id);
}

void Stagings::SendPiece(uint64_t id, const std::string& host, uint32_t piece) {
  if (const auto staging = Find(id)) staging->SendPiece(host, piece);
}

void Stagings::Tell(uint64_t id, const v1::StageResponse& response, const absl::Status& why) {
  const auto staging = Find(id);
  if (!staging) return;
  if (why.ok()) {
    staging->Tell(response);
  } else {
    staging->Tell(why);
  }
}

}  // namespace muster::runtime
