#include "worker/stage/piece_source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/status.h"
#include "common/tree.h"
#include "worker/facts/route.h"
#include "worker/stage/peer_wire.h"

namespace muster::stage {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr size_t kPeerWindow = 16;
constexpr size_t kControllerWindow = 8;  // stage.proto
constexpr milliseconds kConnectLimit(4'000);
// A parent that waits itself says so every second.
constexpr milliseconds kSilence(8'000);

absl::Status FinishConnect(int fd, milliseconds limit) {
  pollfd wait = {.fd = fd, .events = POLLOUT, .revents = 0};
  const int ready = poll(&wait, 1, static_cast<int>(limit.count()));
  int error = ready == 0 ? ETIMEDOUT : 0;
  socklen_t size = sizeof error;
  if (ready > 0) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (ready < 0) error = errno;
  return error == 0 ? absl::OkStatus() : absl::UnavailableError(std::strerror(error));
}

}  // namespace

PeerSource::PeerSource(std::string address, uint32_t port, std::string key)
    : address_(std::move(address)), port_(port), key_(std::move(key)) {}

size_t PeerSource::Window() const {
  return kPeerWindow;
}

absl::Status PeerSource::Connect() {
  auto address = facts::ResolveAddress(address_, {}, SteadyClock::now() + kConnectLimit);
  if (!address) return absl::UnavailableError("can't resolve '" + address_ + "'");
  address->SetPort(port_);
  UniqueFd fd(socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return PosixError("make a socket");
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address->storage), address->size) != 0) {
    if (errno != EINPROGRESS) return absl::UnavailableError(std::strerror(errno));
    MUSTER_RETURN_IF_ERROR(FinishConnect(fd.get(), kConnectLimit));
  }
  const int flags = fcntl(fd.get(), F_GETFL);
  fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK);
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return absl::CancelledError("closed");
    socket_.reset(dup(fd.get()));
  }
  MUSTER_ASSIGN_OR_RETURN(
      stream_, TlsStream::Start(std::move(fd), TlsStream::Side::kClient, key_, kConnectLimit));
  stream_->SetPatience(kSilence);
  return absl::OkStatus();
}

absl::Status PeerSource::Want(uint32_t piece) {
  if (stream_ == nullptr) MUSTER_RETURN_IF_ERROR(Connect());
  return stream_->Write(PutNumber(piece));
}

absl::StatusOr<Piece> PeerSource::Next() {
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const std::string header, stream_->Read(kPieceHeaderBytes));
    const uint32_t number = GetNumber(header);
    const uint32_t size = GetNumber(std::string_view(header).substr(kNumberBytes));
    if (number == kAlive) continue;
    if (size > kPieceBytes) return absl::DataLossError("it sent a piece that is too large");
    MUSTER_ASSIGN_OR_RETURN(std::string bytes, stream_->Read(size));
    return Piece{number, std::move(bytes)};
  }
}

void PeerSource::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  if (socket_) shutdown(socket_.get(), SHUT_RDWR);
}

size_t ControllerSource::Window() const {
  return kControllerWindow;
}

absl::Status ControllerSource::Want(uint32_t piece) {
  ask_(piece);
  return absl::OkStatus();
}

absl::StatusOr<Piece> ControllerSource::Next() {
  const auto ready = [this] {
    mutex_.AssertReaderHeld();
    return closed_ || !pieces_.empty();
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&ready));
  if (closed_) return absl::CancelledError("closed");
  Piece piece = std::move(pieces_.front());
  pieces_.pop_front();
  return piece;
}

void ControllerSource::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
}

void ControllerSource::Deliver(Piece piece) {
  absl::MutexLock lock(&mutex_);
  pieces_.push_back(std::move(piece));
}

}  // namespace muster::stage
