#include "controller/nodes/link_factory.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "common/local_daemon.h"
#include "common/status.h"
#include "controller/nodes/command_line.h"
#include "controller/nodes/dial.h"
#include "controller/nodes/dial_command.h"
#include "controller/nodes/dial_gate.h"
#include "controller/nodes/dial_tls.h"
#include "controller/nodes/reach_worker.h"
#include "controller/nodes/remote_command.h"
#include "controller/nodes/ssh/dial_ssh.h"
#include "controller/nodes/ssh/ssh_words.h"
#include "controller/nodes/stream_link.h"
#include "controller/nodes/transport.h"
#include "controller/nodes/worker_programs.h"

namespace muster::nodes {
namespace {

constexpr int64_t kMostSshTimeout = 8;
constexpr uint32_t kIdleExit = 600;  // seconds; of local daemons, as a bridge has it for others

std::string DefaultStateParent() {
  const char* parent = std::getenv("MUSTER_STATE");
  if (parent != nullptr && *parent != '\0') return parent;
  return "/var/tmp/muster-" + std::to_string(getuid());
}

std::string ProgramBeside(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? name : (self.parent_path() / name).string();
}

// Of a direct connection any answer but silence is definite: there is no login that could be busy.
absl::StatusOr<Connection> OrNobody(absl::StatusOr<Connection> connection) {
  if (!absl::IsUnavailable(connection.status())) return connection;
  return absl::NotFoundError(connection.status().message());
}

absl::StatusOr<Connection> Bare(absl::StatusOr<UniqueFd> fd) {
  if (!fd.ok()) return fd.status();
  return Connection{*std::move(fd), nullptr};
}

class LinkFactoryImpl : public LinkFactory {
 public:
  explicit LinkFactoryImpl(LinkOptions options)
      : options_(std::move(options)),
        gate_(std::make_shared<DialGate>(options_.parallel_commands)) {
    if (options_.musterd.empty()) options_.musterd = ProgramBeside("musterd");
    if (options_.state_parent.empty()) options_.state_parent = DefaultStateParent();
    programs_ = std::make_shared<WorkerPrograms>(options_.musterd);
  }

  absl::StatusOr<std::unique_ptr<NodeLink>> Make(const v1::Host& host,
                                                 const std::string& default_transport,
                                                 LinkListener& listener, LogSink& sink) override {
    MUSTER_ASSIGN_OR_RETURN(Way way,
                            FindWay(host, default_transport,
                                    [&listener, name = host.host()] { listener.OnPush(name); }));
    return std::make_unique<StreamLink>(way.endpoint.host, way.endpoint.Describe(), way.place,
                                        options_, std::move(way.dialer), listener, sink);
  }

  absl::StatusOr<Dialer> MakeDialer(const v1::Host& host, const std::string& default_transport) {
    MUSTER_ASSIGN_OR_RETURN(Way way, FindWay(host, default_transport, [] {}));
    return std::move(way.dialer);
  }

 private:
  struct Way {
    Endpoint endpoint;
    std::string place;  // begins what is said of failures
    Dialer dialer;
  };

  // `on_push`: the worker is being pushed to the host.
  absl::StatusOr<Way> FindWay(const v1::Host& host, const std::string& default_transport,
                              std::function<void()> on_push) {
    MUSTER_ASSIGN_OR_RETURN(const Endpoint endpoint, ResolveEndpoint(host, default_transport));
    std::string place = endpoint.Describe();
    Dialer dialer;
    switch (endpoint.kind) {
      case Endpoint::Kind::kLocal:
        dialer = LocalDialer(endpoint.host);
        place = endpoint.host;
        break;
      case Endpoint::Kind::kDirect:
        dialer = DirectDialer(endpoint);
        place = endpoint.HostPort();
        break;
      case Endpoint::Kind::kSsh: {
        auto made = SshDialer(endpoint, host, std::move(on_push));
        if (!made.ok()) return Annotate(made.status(), place);
        dialer = *std::move(made);
        break;
      }
      case Endpoint::Kind::kOpenssh:
        dialer = CommandDialer(endpoint.host, OpensshWords(endpoint.words, host, SshTimeout()),
                               std::move(on_push));
        break;
      case Endpoint::Kind::kCommand: {
        auto words = FillTemplate(endpoint.words, host);
        if (!words.ok()) return Annotate(words.status(), place);
        dialer = CommandDialer(endpoint.host, *std::move(words), std::move(on_push));
        break;
      }
    }
    return Way{endpoint, std::move(place), std::move(dialer)};
  }

  // ssh gives up before anybody who waits for it, so that it can say why.
  int SshTimeout() const {
    const auto limit = std::chrono::duration_cast<std::chrono::seconds>(options_.command_timeout);
    return static_cast<int>(std::clamp<int64_t>(limit.count() / 2, 1, kMostSshTimeout));
  }

  Dialer LocalDialer(const std::string& host) const {
    const LocalDaemon daemon = {.name = NodeName(host),
                                .state_dir = options_.state_parent + "/" + NodeName(host),
                                .program = options_.musterd,
                                .idle_exit_s = kIdleExit,
                                .start_timeout = options_.spawn_timeout};
    return [daemon](const StopSignal& stop) {
      return Bare(ConnectOrStart(
          daemon, [&stop](std::chrono::milliseconds pause) { return stop.WaitFor(pause); }));
    };
  }

  Dialer DirectDialer(const Endpoint& endpoint) {
    absl::MutexLock lock(&mutex_);
    if (endpoint.tls && !pump_) {
      pump_ = std::make_shared<tls::Pump>(tls::Pump::Limits{});
      credentials_ = std::make_shared<tls::Credentials>(options_.tls_dir, tls::Role::kController);
    }
    return [timeout = options_.connect_timeout, endpoint, pump = pump_,
            credentials = credentials_](const StopSignal& stop) -> absl::StatusOr<Connection> {
      if (endpoint.tls) {
        return OrNobody(DialTls({.host = endpoint.host,
                                 .address = endpoint.address,
                                 .port = endpoint.port,
                                 .timeout = timeout},
                                *pump, credentials, stop));
      }
      return OrNobody(Bare(DialOwnTcp(endpoint.address, endpoint.port, timeout, stop)));
    };
  }

  ReachOptions Reach(const std::string& host, std::function<void()> on_push) const {
    return {.timeout = options_.command_timeout,
            .name = NodeName(host),
            .programs = programs_,
            .on_push = std::move(on_push)};
  }

  absl::StatusOr<Dialer> SshDialer(const Endpoint& endpoint, const v1::Host& host,
                                   std::function<void()> on_push) const {
    ssh::SshDial dial = {
        .request = {}, .command = RemoteLine(), .timeout = options_.command_timeout};
    MUSTER_ASSIGN_OR_RETURN(dial.request, ssh::ParseSshWords(endpoint.words));
    dial.request.host = host.host();
    if (host.has_user()) dial.request.user = host.user();
    if (host.has_port()) dial.request.port = static_cast<uint16_t>(host.port());
    return [dial = std::move(dial), reach = Reach(endpoint.host, std::move(on_push)), gate = gate_,
            bastions = bastions_](const StopSignal& stop) -> absl::StatusOr<Connection> {
      const DialGate::Place place = gate->Enter(stop);
      if (!place) return absl::CancelledError("closed");
      MUSTER_ASSIGN_OR_RETURN(StartedProcess started, ssh::DialSsh(dial, *bastions, stop));
      return ReachWorker(std::move(started), reach, stop);
    };
  }

  Dialer CommandDialer(const std::string& host, std::vector<std::string> words,
                       std::function<void()> on_push) const {
    const ReachOptions reach = Reach(host, std::move(on_push));
    return [words = std::move(words), reach,
            gate = gate_](const StopSignal& stop) -> absl::StatusOr<Connection> {
      const DialGate::Place place = gate->Enter(stop);
      if (!place) return absl::CancelledError("closed");
      return DialCommand(words, reach, stop);
    };
  }

  LinkOptions options_;
  const std::shared_ptr<DialGate> gate_;
  std::shared_ptr<WorkerPrograms> programs_;
  const std::shared_ptr<ssh::Bastions> bastions_ = std::make_shared<ssh::Bastions>();
  // Of direct links with TLS, made with the first one.
  absl::Mutex mutex_;
  std::shared_ptr<tls::Pump> pump_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<tls::Credentials> credentials_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<LinkFactory> MakeLinkFactory(const LinkOptions& options) {
  return std::make_unique<LinkFactoryImpl>(options);
}

absl::StatusOr<Dialer> MakeDialer(const LinkOptions& options, const v1::Host& host,
                                  const std::string& default_transport) {
  return LinkFactoryImpl(options).MakeDialer(host, default_transport);
}

}  // namespace muster::nodes
