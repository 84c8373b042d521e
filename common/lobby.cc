#include "common/lobby.h"

#include <sys/socket.h>

#include <cerrno>
#include <iterator>
#include <string>
#include <utility>

#include "common/status.h"

namespace muster {
namespace {

// Pause when no descriptor is to be had: the waiting connection would wake us again at once.
constexpr std::chrono::milliseconds kShortage{100};

std::string Seconds(std::chrono::milliseconds time) {
  return std::to_string(time.count() / 1000) + " s";
}

}  // namespace

Lobby::Lobby(Reactor& reactor, UniqueFd listener, Options options, Handlers handlers)
    : reactor_(reactor),
      listener_(std::move(listener)),
      options_(options),
      handlers_(std::move(handlers)) {
  reactor_.Watch(listener_.get(), [this] { Accept(); });
}

Lobby::~Lobby() {
  reactor_.Cancel(late_);
  reactor_.Cancel(again_);
  reactor_.Unwatch(listener_.get());
  for (const Guest& guest : guests_) reactor_.Unwatch(guest.fd.get());
}

void Lobby::Accept() {
  while (true) {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!fd && errno == EAGAIN) return;
    if (!fd) {
      handlers_.refused(PosixError("accept"));
      reactor_.Want(listener_.get(), false, false);
      again_ = reactor_.After(kShortage, [this] { reactor_.Want(listener_.get(), true, false); });
      return;
    }
    Admit(std::move(fd));
  }
}

void Lobby::Admit(UniqueFd fd) {
  if (const absl::Status allowed = handlers_.check(fd.get()); !allowed.ok()) {
    handlers_.refused(allowed);
    return;
  }
  if (guests_.size() >= options_.places) {
    Dismiss(guests_.begin(), absl::ResourceExhaustedError(
                                 "a connection that has said nothing made room for a new one: " +
                                 std::to_string(options_.places) + " waited"));
  }
  const auto now = reactor_.clock().Now();
  guests_.push_back({std::move(fd), now});
  const auto guest = std::prev(guests_.end());
  reactor_.Watch(guest->fd.get(), [this, guest] { OnSpoken(guest); });
  if (late_ == 0) late_ = reactor_.At(now + options_.patience, [this] { DismissLate(); });
}

void Lobby::OnSpoken(Guests::iterator guest) {
  char byte = 0;
  const ssize_t n = recv(guest->fd.get(), &byte, 1, MSG_PEEK);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  reactor_.Unwatch(guest->fd.get());
  UniqueFd fd = std::move(guest->fd);
  guests_.erase(guest);
  if (n > 0) handlers_.enter(std::move(fd));
}

void Lobby::Dismiss(Guests::iterator guest, const absl::Status& why) {
  reactor_.Unwatch(guest->fd.get());
  guests_.erase(guest);
  handlers_.refused(why);
}

void Lobby::DismissLate() {
  late_ = 0;
  const auto now = reactor_.clock().Now();
  while (!guests_.empty() && now - guests_.front().since >= options_.patience) {
    Dismiss(guests_.begin(), absl::DeadlineExceededError("a connection said nothing within " +
                                                         Seconds(options_.patience)));
  }
  if (guests_.empty()) return;
  late_ = reactor_.At(guests_.front().since + options_.patience, [this] { DismissLate(); });
}

bool LogLimit::Allow(std::chrono::steady_clock::time_point now, size_t* skipped) {
  *skipped = 0;
  if (now - begin_ >= period_) {
    begin_ = now;
    used_ = 0;
    *skipped = std::exchange(skipped_, 0);
  }
  if (used_ >= burst_) {
    ++skipped_;
    return false;
  }
  ++used_;
  return true;
}

}  // namespace muster
