#include "controller/nodes/link_factory.h"

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
    MUSTER_ASSIGN_OR_RETURN(const Endpoint endpoint, ResolveEndpoint(host, default_transport));
    std::string place = endpoint.Describe();
    StreamLink::Dialer dialer;
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
        auto made = SshDialer(endpoint, host, listener);
        if (!made.ok()) return Annotate(made.status(), place);
        dialer = *std::move(made);
        break;
      }
      case Endpoint::Kind::kOpenssh:
        dialer = CommandDialer(endpoint.host, OpensshWords(endpoint.words, host, SshTimeout()),
                               listener);
        break;
      case Endpoint::Kind::kCommand: {
        auto words = FillTemplate(endpoint.words, host);
        if (!words.ok()) return Annotate(words.status(), place);
        dialer = CommandDialer(endpoint.host, *std::move(words), listener);
        break;
      }
    }
    return std::make_unique<StreamLink>(endpoint.host, endpoint.Describe(), place, options_,
                                        std::move(dialer), listener, sink);
  }

 private:
  // ssh gives up before anybody who waits for it, so that it can say why.
  int SshTimeout() const {
    const auto limit = std::chrono::duration_cast<std::chrono::seconds>(options_.command_timeout);
    return static_cast<int>(std::clamp<int64_t>(limit.count() / 2, 1, kMostSshTimeout));
  }

  StreamLink::Dialer LocalDialer(const std::string& host) const {
    const LocalDaemon daemon = {.name = NodeName(host),
                                .state_dir = options_.state_parent + "/" + NodeName(host),
                                .program = options_.musterd,
                                .start_timeout = options_.spawn_timeout};
    return [daemon](const StopSignal& stop) {
      return Bare(ConnectOrStart(
          daemon, [&stop](std::chrono::milliseconds pause) { return stop.WaitFor(pause); }));
    };
  }

  StreamLink::Dialer DirectDialer(const Endpoint& endpoint) const {
    return [timeout = options_.connect_timeout, endpoint](const StopSignal& stop) {
      absl::StatusOr<UniqueFd> fd = DialTcp(endpoint.address, endpoint.port, timeout, stop);
      if (!absl::IsUnavailable(fd.status())) return Bare(std::move(fd));
      return absl::StatusOr<Connection>(absl::UnavailableError(
          std::string(fd.status().message()) +
          ": is musterd running there? start it with: musterd --listen " + endpoint.HostPort()));
    };
  }

  ReachOptions Reach(const std::string& host, LinkListener& listener) const {
    return {.timeout = options_.command_timeout,
            .name = NodeName(host),
            .programs = programs_,
            .on_push = [&listener, host] { listener.OnPush(host); }};
  }

  absl::StatusOr<StreamLink::Dialer> SshDialer(const Endpoint& endpoint, const v1::Host& host,
                                               LinkListener& listener) const {
    ssh::SshDial dial = {
        .request = {}, .command = RemoteLine(), .timeout = options_.command_timeout};
    MUSTER_ASSIGN_OR_RETURN(dial.request, ssh::ParseSshWords(endpoint.words));
    dial.request.host = host.host();
    if (host.has_user()) dial.request.user = host.user();
    if (host.has_port()) dial.request.port = static_cast<uint16_t>(host.port());
    return [dial = std::move(dial), reach = Reach(endpoint.host, listener), gate = gate_,
            bastions = bastions_](const StopSignal& stop) -> absl::StatusOr<Connection> {
      const DialGate::Place place = gate->Enter(stop);
      if (!place) return absl::CancelledError("closed");
      MUSTER_ASSIGN_OR_RETURN(StartedProcess started, ssh::DialSsh(dial, *bastions, stop));
      return ReachWorker(std::move(started), reach, stop);
    };
  }

  StreamLink::Dialer CommandDialer(const std::string& host, std::vector<std::string> words,
                                   LinkListener& listener) const {
    const ReachOptions reach = Reach(host, listener);
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
};

}  // namespace

std::unique_ptr<LinkFactory> MakeLinkFactory(const LinkOptions& options) {
  return std::make_unique<LinkFactoryImpl>(options);
}

}  // namespace muster::nodes
