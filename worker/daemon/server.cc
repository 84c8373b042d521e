#include "worker/daemon/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "common/local_daemon.h"
#include "common/log.h"
#include "common/status.h"
#include "common/unix_socket.h"
#include "common/version.h"
#include "worker/daemon/attach_service.h"
#include "worker/daemon/device_probe.h"
#include "worker/daemon/doors.h"
#include "worker/daemon/probe_helper.h"
#include "worker/daemon/worker.h"
#include "worker/facts/node_facts.h"
#include "worker/shim/frame.h"

namespace muster::worker {
namespace {

// No message of the protocol is larger than 1 MiB; a wish with many ranks and large environments
// may be.
constexpr int kMaxMessage = 64 << 20;
constexpr std::chrono::milliseconds kIdleCheck(250);

// The daemon pings too, or a bridge or connection would stay behind after a partition; and it
// allows the controller's pings every 2 s, which gRPC would punish by default.
std::unique_ptr<grpc::Server> StartGrpc(AttachService& service) {
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  builder.SetMaxReceiveMessageSize(kMaxMessage);
  builder.SetMaxSendMessageSize(kMaxMessage);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 2000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 3000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  return builder.BuildAndStart();
}

v1::WorkerHello MakeHello(const Options& options, const StateDir& state,
                          tls::Credentials& credentials, const Clock& clock,
                          const std::vector<v1::Device>& devices) {
  v1::WorkerHello hello;
  hello.set_protocol(kProtocol);
  hello.set_version(kVersion);
  hello.set_node_name(options.name);
  hello.set_boot_id(facts::BootId());
  hello.set_net_ns(facts::NetNamespace());
  hello.set_cores(facts::Cores());
  hello.set_memory_bytes(facts::MemoryBytes());
  hello.set_state_dir(state.path);
  hello.set_pid(static_cast<uint32_t>(getpid()));
  hello.set_uid(getuid());
  hello.mutable_devices()->Add(devices.begin(), devices.end());
  hello.set_realtime_ns(clock.RealtimeNs());
  if (const auto loaded = credentials.Get(); loaded.ok()) {
    hello.set_certificate_ends_s((*loaded)->own.not_after_s);
  }
  return hello;
}

std::string EnvironmentOr(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

std::string Tag(const std::string& state_dir) {
  std::array<char, 9> hex;
  std::snprintf(hex.data(), hex.size(), "%08x", shim::Crc32(state_dir));
  return hex.data();
}

}  // namespace

// In order of construction; gRPC goes first when all is torn down.
struct Server::Parts {
  Parts(const Options& options, const StateDir& state, tls::Credentials& credentials,
        const std::string& shim_program)
      : reactor(Clock::Real()),
        cgroups(ranks::Cgroups::Detect()),
        node{reactor,         facts::ProcReader::Real(),
             *cgroups,        state.path,
             shim_program,    facts::BootId(),
             Tag(state.path), ranks::BaseEnvironment(environ)},
        helper(reactor, {.state_dir = state.path,
                         .fake_devices = options.fake_devices,
                         .kernel_log = EnvironmentOr("MUSTER_KMSG", ""),
                         .environment = node.base_environment}),
        devices(reactor, helper, options.fake_devices),
        worker(
            node,
            [this, &options, &state,
             &credentials](const std::function<void(v1::WorkerHello)>& done) {
              devices.Ask([this, &options, &state, &credentials, done](const auto& found) {
                done(MakeHello(options, state, credentials, reactor.clock(), found));
              });
            },
            helper),
        service(reactor, credentials.folder(),
                {[this](const auto& session, const auto& message) {
                   worker.OnMessage(session, message);
                 },
                 [this](const auto& session) { worker.OnWritable(session); },
                 [this](const auto& session) { worker.OnClosed(session); }}) {}

  Reactor reactor;
  std::unique_ptr<ranks::Cgroups> cgroups;
  NodeContext node;
  ProbeHelper helper;
  DeviceProbe devices;
  Worker worker;
  AttachService service;
  UniqueFd signals;
  std::unique_ptr<grpc::Server> grpc;
  std::unique_ptr<Doors> doors;
  std::optional<Reactor::TimePoint> idle_since;
};

Server::Server(const Options& options, StateDir state, std::string shim_program)
    : options_(options),
      state_(std::move(state)),
      shim_program_(std::move(shim_program)),
      credentials_(std::make_shared<tls::Credentials>(
          options.tls_dir.empty() ? state_.path + "/tls" : options.tls_dir, tls::Role::kNode)) {}

Server::~Server() = default;

absl::Status Server::Listen() {
  for (const std::string& address : options_.listen) {
    MUSTER_ASSIGN_OR_RETURN(TcpListener listener, ListenTcp(address));
    sockets_.push_back(std::move(listener));
  }
  MUSTER_ASSIGN_OR_RETURN(UniqueFd socket, ListenUnix(SocketPath(state_.path)));
  sockets_.push_back({std::move(socket), false});
  // They may come later, over this very daemon (`muster cert push`); bad ones are a mistake.
  const absl::Status certificates = CertificatesForTls();
  return absl::IsNotFound(certificates) ? absl::OkStatus() : certificates;
}

absl::Status Server::CertificatesForTls() const {
  const auto needs_tls = [](const TcpListener& listener) { return listener.tls; };
  if (std::none_of(sockets_.begin(), sockets_.end(), needs_tls)) return absl::OkStatus();
  return credentials_->Get().status();
}

void Server::WatchSignals() {
  sigset_t mask;
  sigemptyset(&mask);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&mask, signal);
  // Before gRPC's threads exist, so that they inherit the mask.
  sigprocmask(SIG_BLOCK, &mask, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  parts_->signals.reset(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  parts_->reactor.Watch(parts_->signals.get(), [this] {
    signalfd_siginfo info;
    while (read(parts_->signals.get(), &info, sizeof info) > 0) {
      if (info.ssi_signo != SIGCHLD) {
        log::Info("signal " + std::to_string(info.ssi_signo) + ": musterd ends, ranks live on");
        parts_->reactor.Stop();
      }
    }
    // Our children are shims and device tools; their ends are noticed by their sockets and pipes.
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  });
}

void Server::CheckIdle() {
  const auto now = parts_->reactor.clock().Now();
  if (!parts_->worker.Idle()) {
    parts_->idle_since.reset();
  } else if (!parts_->idle_since) {
    parts_->idle_since = now;
  } else if (now - *parts_->idle_since >= std::chrono::seconds(options_.idle_exit_s)) {
    log::Info("idle for " + std::to_string(options_.idle_exit_s) + " s: musterd ends");
    parts_->reactor.Stop();
    return;
  }
  parts_->reactor.After(kIdleCheck, [this] { CheckIdle(); });
}

void Server::Run() {
  parts_ = std::make_unique<Parts>(options_, state_, *credentials_, shim_program_);
  WatchSignals();
  log::Info("musterd " + std::string(kVersion) + " serves " + options_.name + " in " + state_.path +
            " (" + parts_->cgroups->Describe() + ")");
  if (const absl::Status missing = CertificatesForTls(); !missing.ok()) {
    log::Warning("no controller can connect yet: " + std::string(missing.message()));
  }
  parts_->worker.LoadAttempts();
  parts_->grpc = StartGrpc(parts_->service);
  parts_->doors = std::make_unique<Doors>(parts_->reactor, credentials_, [this](UniqueFd fd) {
    grpc::AddInsecureChannelFromFd(parts_->grpc.get(), fd.release());
  });
  for (TcpListener& listener : sockets_) {
    if (listener.tls) {
      parts_->doors->OpenTls(std::move(listener.socket));
    } else {
      parts_->doors->OpenPlain(std::move(listener.socket));
    }
  }
  if (options_.idle_exit_s > 0) CheckIdle();
  parts_->reactor.Run();
  unlink(SocketPath(state_.path).c_str());
  parts_->doors.reset();
  parts_->grpc->Shutdown(std::chrono::system_clock::now());
  parts_->grpc.reset();
}

}  // namespace muster::worker
