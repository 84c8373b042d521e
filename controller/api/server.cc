#include "controller/api/server.h"

#include <grpcpp/server_posix.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>

#include "common/lobby.h"
#include "common/log.h"
#include "common/reactor.h"
#include "common/status.h"
#include "common/unix_socket.h"
#include "controller/api/service.h"

namespace muster::api {
namespace {

constexpr int kMaxMessage = 64 << 20;
// Refusals that are logged: so many in each period.
constexpr size_t kLinesInABurst = 20;
constexpr std::chrono::seconds kBurst(10);

// Accepts connections itself instead of giving gRPC an address, because only so the peer's user can
// be asked.
class ServerImpl : public Server {
 public:
  ServerImpl(const Options& options, std::string socket_path, Backend& backend,
             logs::AttemptLogs& logs)
      : socket_path_(std::move(socket_path)),
        service_(backend, logs, options.max_log_viewers, options.watch_queue),
        reactor_(Clock::Real()),
        log_limit_(kLinesInABurst, kBurst) {}

  absl::Status Start();
  ~ServerImpl() override;

 private:
  void LogRefusal(const absl::Status& why);

  const std::string socket_path_;
  ControlService service_;
  std::unique_ptr<grpc::Server> server_;
  Reactor reactor_;
  LogLimit log_limit_;            // thread_'s
  std::unique_ptr<Lobby> lobby_;  // thread_'s while that runs
  std::thread thread_;
};

absl::Status ServerImpl::Start() {
  MUSTER_ASSIGN_OR_RETURN(UniqueFd listener, ListenUnix(socket_path_));
  grpc::ServerBuilder builder;
  builder.RegisterService(&service_);
  builder.SetMaxReceiveMessageSize(kMaxMessage);
  builder.SetMaxSendMessageSize(kMaxMessage);
  server_ = builder.BuildAndStart();
  if (!server_) return absl::InternalError("the control service could not be started");
  lobby_ = std::make_unique<Lobby>(
      reactor_, std::move(listener), Lobby::Options{},
      Lobby::Handlers{
          [](int fd) { return CheckUnixPeer(fd, geteuid()); },
          [this](UniqueFd fd) { grpc::AddInsecureChannelFromFd(server_.get(), fd.release()); },
          [this](const absl::Status& why) { LogRefusal(why); }});
  thread_ = std::thread([this] { reactor_.Run(); });
  return absl::OkStatus();
}

ServerImpl::~ServerImpl() {
  if (thread_.joinable()) {
    reactor_.Stop();
    thread_.join();
  }
  if (lobby_) unlink(socket_path_.c_str());
  lobby_.reset();
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now());
  service_.WaitForViewers();
  server_->Wait();
}

void ServerImpl::LogRefusal(const absl::Status& why) {
  size_t skipped = 0;
  if (!log_limit_.Allow(reactor_.clock().Now(), &skipped)) return;
  log::Warning("control socket: refused a connection: " + std::string(why.message()) +
               (skipped > 0 ? " (and " + std::to_string(skipped) + " before it)" : ""));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options, const StateLock& lock,
                                                      Backend& backend, logs::AttemptLogs& logs) {
  auto server = std::make_unique<ServerImpl>(options, SocketPath(lock.state_dir()), backend, logs);
  MUSTER_RETURN_IF_ERROR(server->Start());
  return server;
}

}  // namespace muster::api
