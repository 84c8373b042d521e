#include "controller/engine/stage_flow.h"

#include <absl/strings/str_cat.h>
#include <arpa/inet.h>

#include <algorithm>
#include <string>
#include <utility>

#include "controller/engine/text.h"
#include "controller/stage/relay.h"

namespace muster::engine {
namespace {

using stage::StageNode;
using stage::StageRun;

constexpr milliseconds kTick(250);
// A worker says something every two seconds (stage.proto).
constexpr milliseconds kSilence(60'000);
// Of one host: read at a time, and waiting beyond. It may ask again for what is on its way whenever
// it is given another source; the protocol allows 8 at a time.
constexpr uint32_t kPiecesAtATime = 8;
constexpr size_t kMostWanted = 256;

bool IsNumeric(const std::string& address) {
  in_addr v4;
  in6_addr v6;
  return inet_pton(AF_INET, address.c_str(), &v4) == 1 ||
         inet_pton(AF_INET6, address.c_str(), &v6) == 1;
}

int64_t Nanoseconds(milliseconds time) {
  return time.count() * 1'000'000;
}

std::string Seconds(milliseconds time) {
  return absl::StrCat(static_cast<double>(time.count()) / 1000.0, " s");
}

StageRun* FindStaging(Context& c, uint64_t id) {
  const auto it = c.state().stagings.find(id);
  return it == c.state().stagings.end() ? nullptr : &it->second;
}

void SendOrder(Context& c, const StageRun& run, const StageNode& node, v1::StageOrder order) {
  order.set_transfer(run.transfer);
  v1::AttachRequest message;
  *message.mutable_stage() = std::move(order);
  c.Do(Send{node.host.host(), std::move(message)});
}

void SendBegin(Context& c, const StageRun& run, const StageNode& node) {
  v1::StageOrder order;
  v1::StageBegin& begin = *order.mutable_begin();
  begin.set_content_id(run.content_id);
  begin.set_manifest_bytes(run.manifest_bytes);
  begin.set_key(run.key);
  const std::string& address = stage::DataAddress(node.host);
  if (IsNumeric(address)) begin.set_listen_address(address);
  begin.set_first_port(run.request.port_range().first());
  begin.set_last_port(run.request.port_range().last());
  begin.set_link_path(run.request.link_path());
  begin.set_keep(run.request.keep());
  begin.set_verify(run.request.verify());
  begin.set_dry_run(run.request.dry_run());
  SendOrder(c, run, node, std::move(order));
}

void SendSources(Context& c, StageRun& run) {
  for (const size_t i : stage::AssignSources(run, c.now_ns())) {
    StageNode& node = run.nodes[i];
    node.wanted.clear();  // of the source before
    v1::StageOrder order;
    v1::StageSource& source = *order.mutable_source();
    if (node.source >= 0) {
      const StageNode& peer = run.nodes[static_cast<size_t>(node.source)];
      source.set_node(static_cast<uint32_t>(node.source));
      source.set_address(stage::DataAddress(peer.host));
      source.set_port(peer.port);
    }
    SendOrder(c, run, node, std::move(order));
  }
}

// Given up: what it still says does not count any more, and it is told so if it can be.
void Fail(Context& c, const StageRun& run, StageNode& node, const std::string& why) {
  node.status.set_state(v1::STAGE_STATE_FAILED);
  node.status.set_error(Printable(why));
  node.wanted.clear();
  v1::StageOrder end;
  end.mutable_end();
  if (node.up) SendOrder(c, run, node, std::move(end));
}

// Lets pieces be read that the node waits for, a few at a time, so that no host takes the reader
// from the others.
void ReadNext(Context& c, const StageRun& run, StageNode& node) {
  while (node.under_way < kPiecesAtATime && !node.wanted.empty()) {
    c.Do(SendPiece{run.id, node.host.host(), node.wanted.front()});
    node.wanted.pop_front();
    ++node.under_way;
  }
}

void TakeWant(Context& c, const StageRun& run, StageNode& node, const v1::StageWant& want) {
  if (node.wanted.size() + static_cast<size_t>(want.pieces_size()) > kMostWanted) {
    Fail(c, run, node,
         absl::StrCat("asked for more than ", kMostWanted,
                      " pieces at a time: is its musterd of the same version?"));
    return;
  }
  node.wanted.insert(node.wanted.end(), want.pieces().begin(), want.pieces().end());
  ReadNext(c, run, node);
}

v1::StageResponse Snapshot(const Context& c, const StageRun& run, bool last) {
  v1::StageResponse response;
  response.set_content_id(run.content_id);
  response.set_files(run.files);
  response.set_bytes(run.bytes);
  response.set_ignored(run.ignored);
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    const StageNode& node = run.nodes[i];
    v1::StageHost& host = *response.add_hosts();
    host.set_host(node.host.host());
    *host.mutable_status() = node.status;
    if (node.source >= 0) host.set_source(run.nodes[static_cast<size_t>(node.source)].host.host());
    if (node.source == stage::kController) host.set_source("controller");
    host.set_through_controller(stage::ThroughController(run, i));
  }
  response.set_bytes_sent(run.bytes_sent);
  response.set_duration_ns(c.now_ns() - run.started_ns);
  response.set_last(last);
  return response;
}

// Ends it on every node that can be told; the others end it themselves after a while.
void EndStaging(Context& c, StageRun& run, const absl::Status& why) {
  for (const StageNode& node : run.nodes) {
    v1::StageOrder order;
    order.mutable_end();
    if (node.up) SendOrder(c, run, node, std::move(order));
  }
  c.Do(CancelTimer{{run.id, TimerKind::kStage, ""}});
  c.Do(StageNews{run.id, Snapshot(c, run, true), why});
  c.state().stagings.erase(run.id);
}

// Sources for those that have none; the end when all have ended.
void Continue(Context& c, StageRun& run) {
  const bool ended = std::all_of(run.nodes.begin(), run.nodes.end(),
                                 [](const StageNode& node) { return node.ended(); });
  if (ended) {
    EndStaging(c, run, absl::OkStatus());
  } else {
    SendSources(c, run);
  }
}

bool IsHopeless(const absl::Status& why) {
  return absl::IsFailedPrecondition(why) || absl::IsPermissionDenied(why) ||
         absl::IsUnauthenticated(why) || absl::IsInvalidArgument(why);
}

StageNode* FindNode(StageRun& run, const std::string& host) {
  const auto it = std::find_if(run.nodes.begin(), run.nodes.end(),
                               [&](const StageNode& node) { return node.host.host() == host; });
  return it == run.nodes.end() ? nullptr : &*it;
}

void TakeStatus(Context& c, StageNode& node, const v1::StageStatus& status) {
  if (status.pieces() != node.status.pieces()) node.progress_ns = c.now_ns();
  node.status = status;
}

}  // namespace

void OnStageRequested(Context& c, const StageRequested& event) {
  StageRun& run = c.state().stagings[event.run.id] = event.run;
  run.started_ns = c.now_ns();
  for (StageNode& node : run.nodes) {
    node.down_since_ns = c.now_ns();
    node.status.set_state(v1::STAGE_STATE_CONNECTING);
    c.Dial(node.host, run.request.default_transport());
    node.up = c.IsUp(node.host.host());
    node.heard_ns = c.now_ns();
    if (node.up) SendBegin(c, run, node);
  }
  c.Do(StartTimer{{run.id, TimerKind::kStage, ""}, kTick});
  Continue(c, run);
}

void OnStageReported(Context& c, const StageReported& event) {
  for (auto& [id, run] : c.state().stagings) {
    if (run.transfer != event.report.transfer()) continue;
    StageNode* const node = FindNode(run, event.host);
    if (node == nullptr) return;
    const auto index = static_cast<size_t>(node - run.nodes.data());
    const v1::StageReport& report = event.report;
    if (node->failed()) return;  // given up meanwhile
    node->heard_ns = c.now_ns();
    if (report.has_listening()) {
      node->ready = true;
      node->port = report.listening().port();
      // What it was told before may have been lost with the link.
      node->source = stage::kNoSource;
    } else if (report.has_want()) {
      TakeWant(c, run, *node, report.want());
    } else if (report.has_lost()) {
      // The controller has no index: pieces that came from it did not fit, and it is asked anew.
      if (node->source == stage::kController ||
          node->source == static_cast<int>(report.lost().node())) {
        stage::BanSource(run, index);
      }
    } else if (report.has_status()) {
      TakeStatus(c, *node, report.status());
    }
    Continue(c, run);
    return;
  }
}

void OnPieceSent(Context& c, const PieceSent& event) {
  StageRun* const run = FindStaging(c, event.id);
  if (run == nullptr) return;
  run->bytes_sent += event.bytes;
  StageNode* const node = FindNode(*run, event.host);
  if (node == nullptr) return;
  if (node->under_way > 0) --node->under_way;
  ReadNext(c, *run, *node);
}

void OnStageBroken(Context& c, const StageBroken& event) {
  StageRun* const run = FindStaging(c, event.id);
  if (run != nullptr) EndStaging(c, *run, event.why);
}

void OnStageTick(Context& c, uint64_t id) {
  StageRun* const run = FindStaging(c, id);
  if (run == nullptr) return;
  for (StageNode& node : run->nodes) {
    if (node.ended()) continue;
    if (node.up) {
      if (c.now_ns() - node.heard_ns >= Nanoseconds(kSilence)) {
        Fail(c, *run, node,
             absl::StrCat("its staging process has said nothing for ", Seconds(kSilence),
                          ": is it stopped?"));
      }
      continue;
    }
    const bool was_there = node.status.state() != v1::STAGE_STATE_CONNECTING;
    const milliseconds limit = was_there ? c.state().limits.prepare : c.state().limits.connect;
    if (c.now_ns() - node.down_since_ns < Nanoseconds(limit)) continue;
    const auto link = c.state().links.find(node.host.host());
    const std::string error = link == c.state().links.end() ? "" : link->second.error;
    Fail(c, *run, node,
         absl::StrCat(was_there ? "its link was broken for " : "did not say hello within ",
                      Seconds(limit), error.empty() ? "" : absl::StrCat(" (", error, ")")));
  }
  stage::ReplanSlow(*run, c.now_ns());
  c.Do(StageNews{id, Snapshot(c, *run, false), absl::OkStatus()});
  c.Do(StartTimer{{id, TimerKind::kStage, ""}, kTick});
  Continue(c, *run);
}

void OnLinkUpInStaging(Context& c, const std::string& host) {
  for (auto& [id, run] : c.state().stagings) {
    StageNode* const node = FindNode(run, host);
    if (node == nullptr || node->failed()) continue;
    node->up = true;
    node->heard_ns = c.now_ns();
    node->wanted.clear();  // of the connection before: it asks again
    SendBegin(c, run, *node);
  }
}

void OnLinkLostInStaging(Context& c, const std::string& host, const absl::Status& why) {
  std::vector<uint64_t> changed;
  for (auto& [id, run] : c.state().stagings) {
    StageNode* const node = FindNode(run, host);
    if (node == nullptr || node->ended()) continue;
    if (std::exchange(node->up, false)) node->down_since_ns = c.now_ns();
    // Its worker may be gone: nobody is sent there. Who fetches from it goes on if it lives.
    node->ready = false;
    if (!IsHopeless(why)) continue;
    Fail(c, run, *node, std::string(why.message()));
    changed.push_back(id);
  }
  for (const uint64_t id : changed) Continue(c, *FindStaging(c, id));
}

bool StagingNeeds(const State& state, const std::string& host) {
  for (const auto& [id, run] : state.stagings) {
    for (const StageNode& node : run.nodes) {
      if (node.host.host() == host && !node.failed()) return true;
    }
  }
  return false;
}

}  // namespace muster::engine
