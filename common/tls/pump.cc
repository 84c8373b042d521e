#include "common/tls/pump.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "common/status.h"
#include "common/tls/tunnel.h"

namespace muster::tls {

void Pump::Epitaph::Write(std::string why) {
  absl::MutexLock lock(&mutex_);
  why_ = std::move(why);
}

std::string Pump::Epitaph::Read() const {
  absl::MutexLock lock(&mutex_);
  return why_;
}

Pump::Pump(Limits limits) : limits_(limits), reactor_(Clock::Real()), thread_([this] { Run(); }) {}

Pump::~Pump() {
  // Whoever still waits for a handshake hears of it.
  reactor_.Post([this] {
    for (Entry& entry : entries_) entry.tunnel->Abort(absl::CancelledError("closed"));
  });
  reactor_.Stop();
  thread_.join();
}

void Pump::Run() {
  // OpenSSL writes to sockets whose other side may have gone, and knows no MSG_NOSIGNAL.
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &mask, nullptr);
  reactor_.Run();
}

void Pump::Accept(UniqueFd socket, const std::shared_ptr<Credentials>& credentials, Done done) {
  auto request = std::make_shared<Request>(Request{.socket = std::move(socket),
                                                   .credentials = credentials,
                                                   .host = "",
                                                   .limit = limits_.handshake,
                                                   .server = true,
                                                   .done = std::move(done)});
  reactor_.Post([this, request] { Begin(std::move(*request)); });
}

void Pump::Connect(UniqueFd socket, const std::shared_ptr<Credentials>& credentials,
                   const std::string& host, std::chrono::milliseconds limit, Done done) {
  auto request = std::make_shared<Request>(Request{.socket = std::move(socket),
                                                   .credentials = credentials,
                                                   .host = host,
                                                   .limit = limit,
                                                   .server = false,
                                                   .done = std::move(done)});
  reactor_.Post([this, request] { Begin(std::move(*request)); });
}

absl::Status Pump::MakeRoom() {
  const auto open = std::count_if(entries_.begin(), entries_.end(),
                                  [](const Entry& entry) { return entry.server && entry.open; });
  if (static_cast<size_t>(open) >= limits_.open) {
    return absl::ResourceExhaustedError(std::to_string(open) + " connections stand already");
  }
  const auto waits = [](const Entry& entry) { return entry.server && !entry.open && !entry.going; };
  const auto waiting = std::count_if(entries_.begin(), entries_.end(), waits);
  if (static_cast<size_t>(waiting) >= limits_.handshakes) {
    const auto oldest = std::find_if(entries_.begin(), entries_.end(), waits);
    oldest->going = true;
    oldest->tunnel->Abort(absl::ResourceExhaustedError(
        "an unfinished handshake made room for a new one: " + std::to_string(waiting) + " waited"));
  }
  return absl::OkStatus();
}

void Pump::Begin(Request request) {
  const auto loaded = request.credentials->Get();
  if (!loaded.ok()) {
    request.done(loaded.status());
    return;
  }
  if (request.server) {
    if (const absl::Status room = MakeRoom(); !room.ok()) {
      request.done(room);
      return;
    }
  }
  const std::string& ca = (*loaded)->own.identity.ca;
  const auto entry = entries_.insert(entries_.end(), Entry{nullptr, request.server});
  const auto epitaph = std::make_shared<Epitaph>();
  Tunnel::Options options = {
      .side = request.server ? Tunnel::Side::kServer : Tunnel::Side::kClient,
      .expected = request.server ? Identity::Controller(ca) : Identity::Node(ca, request.host),
      .limit = request.limit};
  Tunnel::Handlers handlers = {
      [entry, epitaph, done = std::move(request.done)](absl::StatusOr<UniqueFd> fd) {
        if (!fd.ok()) {
          done(fd.status());
          return;
        }
        entry->open = true;
        done(Opened{*std::move(fd), epitaph});
      },
      [this, entry, epitaph](const absl::Status& why) {
        if (!why.ok()) epitaph->Write(std::string(why.message()));
        reactor_.Post([this, entry] { entries_.erase(entry); });
      }};
  entry->tunnel = std::make_unique<Tunnel>(reactor_, std::move(request.socket), *loaded,
                                           std::move(options), std::move(handlers));
  entry->tunnel->Start();
}

}  // namespace muster::tls
