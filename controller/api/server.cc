#include "controller/api/server.h"

#include <grpcpp/server_posix.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "common/unix_socket.h"
#include "controller/api/service.h"

namespace muster::api {
namespace {

constexpr int kMaxMessage = 64 << 20;
// Pause after an accept that failed for want of descriptors, so that the thread does not spin.
constexpr int kAcceptPauseMs = 100;

// Accepts connections itself instead of giving gRPC an address, because only so the peer's user can
// be asked.
class ServerImpl : public Server {
 public:
  ServerImpl(const Options& options, std::string socket_path, Backend& backend,
             logs::AttemptLogs& logs)
      : socket_path_(std::move(socket_path)),
        service_(backend, logs, options.max_log_viewers, options.watch_queue) {}

  absl::Status Start();
  ~ServerImpl() override;

 private:
  void AcceptLoop();
  // One round; false when the loop shall end.
  bool AcceptOne();

  const std::string socket_path_;
  ControlService service_;
  UniqueFd stop_fd_;
  UniqueFd listener_;
  std::unique_ptr<grpc::Server> server_;
  std::thread thread_;
};

absl::Status ServerImpl::Start() {
  stop_fd_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_fd_) return PosixError("eventfd");
  MUSTER_ASSIGN_OR_RETURN(listener_, ListenUnix(socket_path_));
  grpc::ServerBuilder builder;
  builder.RegisterService(&service_);
  builder.SetMaxReceiveMessageSize(kMaxMessage);
  builder.SetMaxSendMessageSize(kMaxMessage);
  server_ = builder.BuildAndStart();
  if (!server_) return absl::InternalError("the control service could not be started");
  thread_ = std::thread([this] { AcceptLoop(); });
  return absl::OkStatus();
}

ServerImpl::~ServerImpl() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    // Can only fail when the counter is full, and then the loop is ending already.
    [[maybe_unused]] const ssize_t n = write(stop_fd_.get(), &one, sizeof one);
    thread_.join();
  }
  if (listener_) unlink(socket_path_.c_str());
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now());
  service_.WaitForViewers();
  server_->Wait();
}

void ServerImpl::AcceptLoop() {
  while (AcceptOne()) {
  }
}

bool ServerImpl::AcceptOne() {
  pollfd fds[2] = {{.fd = listener_.get(), .events = POLLIN, .revents = 0},
                   {.fd = stop_fd_.get(), .events = POLLIN, .revents = 0}};
  if (poll(fds, 2, -1) < 0) return true;
  if (fds[1].revents != 0) return false;
  absl::StatusOr<UniqueFd> connection = AcceptUnix(listener_.get(), geteuid());
  if (connection.ok()) {
    grpc::AddInsecureChannelFromFd(server_.get(), connection->release());
  } else if (!absl::IsUnavailable(connection.status())) {
    log::Warning("control socket: " + std::string(connection.status().message()));
    if (!absl::IsPermissionDenied(connection.status())) poll(&fds[1], 1, kAcceptPauseMs);
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options, const StateLock& lock,
                                                      Backend& backend, logs::AttemptLogs& logs) {
  auto server = std::make_unique<ServerImpl>(options, SocketPath(lock.state_dir()), backend, logs);
  MUSTER_RETURN_IF_ERROR(server->Start());
  return server;
}

}  // namespace muster::api
