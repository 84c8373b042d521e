#include "controller/nodes/transport.h"

#include <arpa/inet.h>

#include "common/suggest.h"

namespace muster::nodes {
namespace {

// Where the user wrote the host: "line 3: host node1".
std::string Place(const v1::Host& host) {
  const std::string name = "host " + host.host();
  return host.line() == 0 ? name : "line " + std::to_string(host.line()) + ": " + name;
}

// The numeric loopback address of a host that is one, else "".
std::string LoopbackAddress(const std::string& host) {
  if (host == "localhost") return "127.0.0.1";
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return (ntohl(v4.s_addr) >> 24) == 127 ? host : "";
  }
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6)) return host;
  return "";
}

absl::Status NoSsh(const v1::Host& host) {
  return absl::InvalidArgumentError(
      Place(host) +
      ": this version does not reach hosts over ssh; it reaches hosts by "
      "transport=local (a musterd on this machine) or by transport=direct on loopback addresses "
      "(127.0.0.0/8, ::1)");
}

absl::StatusOr<Endpoint> Direct(const v1::Host& host) {
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::kDirect;
  endpoint.host = host.host();
  endpoint.address = LoopbackAddress(host.host());
  if (endpoint.address.empty() && host.has_addr()) endpoint.address = LoopbackAddress(host.addr());
  endpoint.port = host.has_worker_port() ? host.worker_port() : kDefaultWorkerPort;
  if (endpoint.address.empty()) {
    return absl::InvalidArgumentError(
        Place(host) +
        ": transport=direct without TLS is only allowed on loopback addresses "
        "(127.0.0.0/8, ::1), because anybody on the network could run commands through it; this "
        "version has no TLS yet");
  }
  if (endpoint.port == 0 || endpoint.port > 65535) {
    return absl::InvalidArgumentError(
        Place(host) + ": worker_port=" + std::to_string(endpoint.port) + " is not in 1 to 65535");
  }
  return endpoint;
}

}  // namespace

std::string Endpoint::HostPort() const {
  const bool v6 = address.find(':') != std::string::npos;
  return (v6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

std::string Endpoint::Describe() const {
  return kind == Kind::kLocal ? "local" : "direct " + HostPort();
}

bool IsLoopback(const std::string& host) {
  return !LoopbackAddress(host).empty();
}

absl::StatusOr<Endpoint> ResolveEndpoint(const v1::Host& host,
                                         const std::string& default_transport) {
  std::string transport = host.has_transport() ? host.transport() : default_transport;
  if (transport.empty()) transport = IsLoopback(host.host()) ? "local" : "ssh";
  if (transport == "local") {
    Endpoint endpoint;
    endpoint.host = host.host();
    return endpoint;
  }
  if (transport == "direct") return Direct(host);
  if (transport == "ssh") return NoSsh(host);
  return absl::InvalidArgumentError(Place(host) + ": unknown transport '" + transport + "'" +
                                    DidYouMean(transport, {"local", "direct", "ssh"}) +
                                    " (known: local, direct)");
}

}  // namespace muster::nodes
