#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/hostfile/hostfile.h"

namespace muster::hostfile {
namespace {

using Json = nlohmann::ordered_json;

Json HostJson(const v1::Host& host) {
  Json out;
  out["host"] = host.host();
  out["port"] = host.has_port() ? Json(host.port()) : Json(nullptr);
  out["user"] = host.has_user() ? Json(host.user()) : Json(nullptr);
  out["slots"] = host.has_slots() ? Json(host.slots()) : Json(nullptr);
  out["line"] = host.line();
  if (host.has_max_slots()) out["max_slots"] = host.max_slots();
  if (host.gpus_size() > 0)
    out["gpus"] = std::vector<uint32_t>(host.gpus().begin(), host.gpus().end());
  if (host.has_type()) out["type"] = host.type();
  if (host.spare()) out["spare"] = true;
  if (host.has_addr()) out["addr"] = host.addr();
  if (host.has_iface()) out["iface"] = host.iface();
  if (host.has_transport()) out["transport"] = host.transport();
  if (host.has_worker_port()) out["worker_port"] = host.worker_port();
  return out;
}

}  // namespace

std::string FormatErrors(const std::string& source, const std::vector<Error>& errors) {
  std::string out;
  for (const Error& error : errors) {
    out += source;
    if (error.line > 0) out += fmt::format(":{}", error.line);
    out += fmt::format(": {}\n", error.message);
  }
  return out;
}

std::string ToJson(const Result& result) {
  Json out;
  if (result.ok()) {
    out["hosts"] = Json::array();
    for (const v1::Host& host : result.inventory.hosts()) out["hosts"].push_back(HostJson(host));
    out["warnings"] = std::vector<uint32_t>(result.inventory.warnings().begin(),
                                            result.inventory.warnings().end());
  } else {
    const Error& first = result.errors.front();
    out["error"] = {{"line", first.line}, {"message", first.message}};
    if (first.other_line > 0) out["error"]["other_line"] = first.other_line;
  }
  // A path in a message may hold any bytes.
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace muster::hostfile
