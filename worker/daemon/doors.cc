#include "worker/daemon/doors.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

#include "common/log.h"
#include "worker/daemon/listener.h"

namespace muster::worker {
namespace {

constexpr size_t kLinesInABurst = 20;
constexpr std::chrono::seconds kBurst(10);

}  // namespace

Doors::Doors(Reactor& reactor, std::shared_ptr<tls::Credentials> credentials, Entered entered)
    : reactor_(reactor),
      credentials_(std::move(credentials)),
      entered_(std::move(entered)),
      log_limit_(kLinesInABurst, kBurst) {}

Doors::~Doors() = default;

void Doors::OpenPlain(UniqueFd listener) {
  lobbies_.push_back(std::make_unique<Lobby>(
      reactor_, std::move(listener), Lobby::Options{},
      Lobby::Handlers{
          CheckPeerUid,
          [this](UniqueFd fd) {
            const int on = 1;  // no effect on Unix sockets
            setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            entered_(std::move(fd));
          },
          [this](const absl::Status& why) { LogRefusal(std::string(why.message())); }}));
}

void Doors::OpenTls(UniqueFd listener) {
  // Made after the signals were blocked: its thread must not get them.
  if (!pump_) pump_ = std::make_unique<tls::Pump>(tls::Pump::Limits{});
  lobbies_.push_back(std::make_unique<Lobby>(
      reactor_, std::move(listener), Lobby::Options{},
      Lobby::Handlers{
          [](int) { return absl::OkStatus(); }, [this](UniqueFd fd) { EnterTls(std::move(fd)); },
          [this](const absl::Status& why) { LogRefusal(std::string(why.message())); }}));
}

void Doors::EnterTls(UniqueFd fd) {
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const std::string who = PeerAddress(fd.get());
  pump_->Accept(std::move(fd), credentials_, [this, who](absl::StatusOr<tls::Pump::Opened> opened) {
    if (opened.ok()) {
      entered_(std::move(opened->fd));
    } else if (!absl::IsCancelled(opened.status())) {
      Refused(who, opened.status());
    }
  });
}

void Doors::Refused(const std::string& who, const absl::Status& why) {
  reactor_.Post([this, text = who + ": " + std::string(why.message())] { LogRefusal(text); });
}

void Doors::LogRefusal(const std::string& text) {
  size_t skipped = 0;
  if (!log_limit_.Allow(reactor_.clock().Now(), &skipped)) return;
  log::Warning("refused a connection: " + text +
               (skipped > 0 ? " (and " + std::to_string(skipped) + " before it)" : ""));
}

}  // namespace muster::worker
