#include "controller/nodes/link_factory.h"

#include <utility>

#include "common/status.h"
#include "controller/nodes/dial.h"
#include "controller/nodes/local_worker.h"
#include "controller/nodes/stream_link.h"
#include "controller/nodes/transport.h"

namespace muster::nodes {
namespace {

StreamLink::Dialer LocalDialer(const LinkOptions& options, const std::string& host) {
  LocalWorker worker({.host = host,
                      .musterd = options.musterd,
                      .state_parent = options.state_parent,
                      .start_timeout = options.spawn_timeout});
  return [worker = std::move(worker)](const StopSignal& stop) mutable { return worker.Dial(stop); };
}

StreamLink::Dialer DirectDialer(const LinkOptions& options, const Endpoint& endpoint) {
  return [timeout = options.connect_timeout, endpoint](const StopSignal& stop) {
    absl::StatusOr<UniqueFd> fd = DialTcp(endpoint.address, endpoint.port, timeout, stop);
    if (fd.ok() || !absl::IsUnavailable(fd.status())) return fd;
    return absl::StatusOr<UniqueFd>(absl::UnavailableError(
        std::string(fd.status().message()) +
        ": is musterd running there? start it with: musterd --listen " + endpoint.HostPort()));
  };
}

class LinkFactoryImpl : public LinkFactory {
 public:
  explicit LinkFactoryImpl(LinkOptions options) : options_(std::move(options)) {}

  absl::StatusOr<std::unique_ptr<NodeLink>> Make(const v1::Host& host,
                                                 const std::string& default_transport,
                                                 LinkListener& listener, LogSink& sink) override {
    MUSTER_ASSIGN_OR_RETURN(const Endpoint endpoint, ResolveEndpoint(host, default_transport));
    const bool local = endpoint.kind == Endpoint::Kind::kLocal;
    return std::make_unique<StreamLink>(
        endpoint.host, endpoint.Describe(), local ? endpoint.host : endpoint.HostPort(), options_,
        local ? LocalDialer(options_, endpoint.host) : DirectDialer(options_, endpoint), listener,
        sink);
  }

 private:
  const LinkOptions options_;
};

}  // namespace

std::unique_ptr<LinkFactory> MakeLinkFactory(const LinkOptions& options) {
  return std::make_unique<LinkFactoryImpl>(options);
}

}  // namespace muster::nodes
