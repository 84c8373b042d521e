#include "controller/nodes/transport.h"

#include <arpa/inet.h>

#include <algorithm>

#include "common/status.h"
#include "common/suggest.h"
#include "controller/hostfile/host_name.h"
#include "controller/hostfile/host_word.h"
#include "controller/nodes/command_line.h"
#include "controller/nodes/ssh/ssh_words.h"

namespace muster::nodes {
namespace {

// Where the user wrote the host: "line 3: host node1".
std::string Place(const v1::Host& host) {
  const std::string name = "host " + host.host();
  return host.line() == 0 ? name : "line " + std::to_string(host.line()) + ": " + name;
}

// The numeric loopback address of a host that is one, else "".
std::string LoopbackAddress(const std::string& host) {
  if (hostfile::IsLoopbackName(host)) return "127.0.0.1";
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return (ntohl(v4.s_addr) >> 24) == 127 ? host : "";
  }
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6)) return host;
  return "";
}

absl::StatusOr<Endpoint> Direct(const v1::Host& host) {
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::kDirect;
  endpoint.host = host.host();
  endpoint.address = LoopbackAddress(host.host());
  if (endpoint.address.empty() && host.has_addr()) endpoint.address = LoopbackAddress(host.addr());
  endpoint.tls = endpoint.address.empty();
  if (endpoint.tls) endpoint.address = host.has_addr() ? host.addr() : host.host();
  endpoint.port = host.has_worker_port() ? host.worker_port() : kDefaultWorkerPort;
  if (endpoint.port == 0 || endpoint.port > 65535) {
    return absl::InvalidArgumentError(
        Place(host) + ": worker_port=" + std::to_string(endpoint.port) + " is not in 1 to 65535");
  }
  return endpoint;
}

absl::Status CheckName(const std::string& name) {
  const auto& names = TransportNames();
  if (std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
  std::string known;
  for (const std::string& other : names) known += (known.empty() ? "" : ", ") + other;
  return absl::InvalidArgumentError("unknown transport '" + name + "'" + DidYouMean(name, names) +
                                    " (known: " + known + ")");
}

// NAME or NAME:WORDS.
absl::StatusOr<Transport> ParseTransport(std::string_view text) {
  const size_t colon = text.find(':');
  Transport transport;
  transport.name = std::string(text.substr(0, colon));
  MUSTER_RETURN_IF_ERROR(CheckName(transport.name));
  const std::string place = "transport '" + std::string(text) + "'";
  if (colon != std::string_view::npos) {
    if (transport.name == "local" || transport.name == "direct") {
      return absl::InvalidArgumentError(place + " takes no words after ':'");
    }
    auto words = SplitWords(text.substr(colon + 1));
    if (!words.ok()) return Annotate(words.status(), place);
    transport.words = *std::move(words);
  }
  if (transport.name == "command") {
    MUSTER_RETURN_IF_ERROR(Annotate(CheckTemplate(transport.words), place));
  }
  if (transport.name == "ssh") {
    MUSTER_RETURN_IF_ERROR(Annotate(ssh::ParseSshWords(transport.words).status(), place));
  }
  return transport;
}

}  // namespace

std::string Endpoint::HostPort() const {
  const bool v6 = address.find(':') != std::string::npos;
  return (v6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

std::string Endpoint::Describe() const {
  switch (kind) {
    case Kind::kLocal:
      return "local";
    case Kind::kDirect:
      return "direct " + HostPort();
    case Kind::kSsh:
      return "ssh " + host;
    case Kind::kOpenssh:
      return "openssh " + host;
    case Kind::kCommand:
      return "command " + host;
  }
  return "";
}

const std::vector<std::string>& TransportNames() {
  static const std::vector<std::string> names = {"local", "direct", "ssh", "openssh", "command"};
  return names;
}

absl::StatusOr<std::vector<Transport>> ParseTransports(std::string_view text) {
  std::vector<Transport> transports;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    MUSTER_ASSIGN_OR_RETURN(Transport transport, ParseTransport(text.substr(0, end)));
    for (const Transport& other : transports) {
      if (other.name == transport.name) {
        return absl::InvalidArgumentError("transport " + transport.name + " is given twice");
      }
    }
    transports.push_back(std::move(transport));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return transports;
}

absl::StatusOr<Endpoint> ResolveEndpoint(const v1::Host& host, const std::string& transports) {
  auto known = ParseTransports(transports);
  if (!known.ok()) return Annotate(known.status(), Place(host));
  Transport transport;
  if (host.has_transport()) {
    transport.name = host.transport();
  } else if (!known->empty()) {
    transport = known->front();
  } else {
    transport.name = hostfile::IsLoopbackHost(host.host()) ? "local" : "ssh";
  }
  for (const Transport& other : *known) {
    if (other.name == transport.name) transport.words = other.words;
  }
  if (absl::Status status = CheckName(transport.name); !status.ok()) {
    return Annotate(status, Place(host));
  }
  if (transport.name == "direct") return Direct(host);
  Endpoint endpoint;
  endpoint.host = host.host();
  if (transport.name == "ssh") endpoint.kind = Endpoint::Kind::kSsh;
  if (transport.name == "openssh") endpoint.kind = Endpoint::Kind::kOpenssh;
  if (transport.name == "command") endpoint.kind = Endpoint::Kind::kCommand;
  endpoint.words = std::move(transport.words);
  if (transport.name == "command" && endpoint.words.empty()) {
    return absl::InvalidArgumentError(
        Place(host) +
        ": transport=command needs the program: --transport 'command:PROGRAM ... {host} ...'");
  }
  return endpoint;
}

}  // namespace muster::nodes
