#include "worker/stage/peer_server.h"

#include <absl/strings/str_cat.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "common/status.h"
#include "worker/facts/route.h"
#include "worker/stage/peer_wire.h"

namespace muster::stage {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMostChildren = 12;
constexpr milliseconds kHandshake(5'000);
// A child that writes to a slow disk takes nothing for a while.
constexpr milliseconds kPatience(60'000);
constexpr milliseconds kAliveEvery(1'000);

absl::StatusOr<UniqueFd> Bind(facts::SocketAddress address, uint32_t port) {
  address.SetPort(port);
  UniqueFd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return PosixError("make a socket");
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    return PosixError(absl::StrCat("listen on ", address.Text(), " port ", port));
  }
  return fd;
}

uint32_t PortOf(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size);
  if (storage.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PeerServer>> PeerServer::Listen(const std::string& address,
                                                               uint32_t first_port,
                                                               uint32_t last_port, std::string key,
                                                               const PieceMap& pieces,
                                                               Reader reader) {
  std::unique_ptr<PeerServer> server(new PeerServer(std::move(key), pieces, std::move(reader)));
  // "::" also takes IPv4; without IPv6 there is no such socket.
  std::vector<std::string> tries = {address};
  if (address.empty()) tries = {"::", "0.0.0.0"};
  absl::Status error = absl::OkStatus();
  for (const std::string& text : tries) {
    const auto parsed = facts::ParseAddress(text);
    if (!parsed) return absl::InvalidArgumentError("'" + text + "' is no numeric address");
    for (uint32_t port = first_port; port <= last_port && !server->listener_; ++port) {
      auto bound = Bind(*parsed, port);
      if (bound.ok()) {
        server->listener_ = *std::move(bound);
      } else {
        error = bound.status();
      }
    }
    if (server->listener_) break;
  }
  if (!server->listener_) return error;
  server->port_ = PortOf(server->listener_.get());
  server->stop_.reset(eventfd(0, EFD_CLOEXEC));
  if (!server->stop_) return PosixError("eventfd");
  server->thread_ = std::thread([raw = server.get()] { raw->AcceptLoop(); });
  return server;
}

PeerServer::PeerServer(std::string key, const PieceMap& pieces, Reader reader)
    : key_(std::move(key)), pieces_(pieces), reader_(std::move(reader)) {}

PeerServer::~PeerServer() {
  const uint64_t one = 1;
  if (stop_) (void)!write(stop_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
  std::list<Child> children;
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    for (Child& child : children_) {
      if (child.stream) child.stream->Shutdown();
      if (child.socket) shutdown(child.socket.get(), SHUT_RDWR);
    }
    children.swap(children_);
  }
  for (Child& child : children) child.thread.join();
}

void PeerServer::Reap() {
  for (auto it = children_.begin(); it != children_.end();) {
    if (it->ended) it->thread.join();
    it = it->ended ? children_.erase(it) : std::next(it);
  }
}

void PeerServer::AcceptLoop() {
  pollfd fds[2] = {{.fd = listener_.get(), .events = POLLIN, .revents = 0},
                   {.fd = stop_.get(), .events = POLLIN, .revents = 0}};
  while (true) {
    if (poll(fds, 2, -1) < 0 && errno != EINTR) return;
    if (fds[1].revents != 0) return;
    UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) {
      if (errno != EAGAIN) poll(&fds[1], 1, 100);  // no descriptors: not at full speed
      continue;
    }
    absl::MutexLock lock(&mutex_);
    Reap();
    if (children_.size() >= kMostChildren) continue;  // it asks the controller for another source
    Child& child = children_.emplace_back();
    child.socket = std::move(socket);
    child.thread = std::thread([this, &child] { Serve(child); });
  }
}

void PeerServer::Serve(Child& child) {
  UniqueFd socket;
  {
    absl::MutexLock lock(&mutex_);
    // A descriptor of its own: the other one is for the destructor's Shutdown.
    socket.reset(dup(child.socket.get()));
  }
  auto stream = TlsStream::Start(std::move(socket), TlsStream::Side::kServer, key_, kHandshake);
  TlsStream* raw = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (stream.ok() && !closing_) {
      child.stream = *std::move(stream);
      raw = child.stream.get();
    }
  }
  if (raw != nullptr) {
    raw->SetPatience(kPatience);
    while (Answer(*raw).ok()) {
    }
    raw->Shutdown();
  }
  absl::MutexLock lock(&mutex_);
  child.ended = true;
  child.socket.reset();
}

absl::Status PeerServer::Answer(TlsStream& stream) {
  MUSTER_ASSIGN_OR_RETURN(const std::string number, stream.Read(kNumberBytes));
  const uint32_t piece = GetNumber(number);
  PieceMap::Wait wait = PieceMap::Wait::kNotYet;
  while ((wait = pieces_.WaitFor(piece, kAliveEvery)) == PieceMap::Wait::kNotYet) {
    MUSTER_RETURN_IF_ERROR(stream.Write(PutNumber(kAlive) + PutNumber(0)));
  }
  if (wait == PieceMap::Wait::kStopped) return absl::CancelledError("stopped");
  MUSTER_ASSIGN_OR_RETURN(const std::string bytes, reader_(piece));
  MUSTER_RETURN_IF_ERROR(
      stream.Write(PutNumber(piece) + PutNumber(static_cast<uint32_t>(bytes.size()))));
  MUSTER_RETURN_IF_ERROR(stream.Write(bytes));
  bytes_given_ += bytes.size();
  return absl::OkStatus();
}

}  // namespace muster::stage
