#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/clock.h"
#include "common/tls/credentials.h"
#include "common/tls/issue.h"
#include "common/tls/private_file.h"
#include "common/tls/pump.h"

// Folders of certificates and connected sockets for the tests of this folder.

namespace muster::tls {

inline constexpr int64_t kTestDay = 86400;

inline int64_t TestNow() {
  return Clock::Real().RealtimeNs() / 1'000'000'000;
}

inline Validity Around(int64_t from_days, int64_t to_days) {
  return {.not_before_s = TestNow() + from_days * kTestDay,
          .not_after_s = TestNow() + to_days * kTestDay};
}

inline KeyAndCertificate TestAuthority(const std::string& ca = "lab") {
  return *MakeAuthority(ca, Around(-1, 3650));
}

// Key and certificate in one text.
inline std::string TestIdentity(const KeyAndCertificate& authority, const Identity& identity,
                                const Validity& validity = Around(-1, 365)) {
  const std::string key = *MakeKey();
  const auto certificate = SignRequest(authority, *MakeRequest(key, identity), identity, validity);
  EXPECT_TRUE(certificate.ok()) << certificate.status();
  return key + *certificate;
}

class TempDir {
 public:
  TempDir() {
    std::string name = std::filesystem::temp_directory_path() / "muster-tls-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// A folder with identity.pem and trust.pem.
class TestFolder {
 public:
  TestFolder(const std::string& identity_pem, const std::string& trust_pem) {
    Put(identity_pem, trust_pem);
  }
  void Put(const std::string& identity_pem, const std::string& trust_pem) {
    EXPECT_TRUE(WriteOwnFile(dir_ / kTrustFile, trust_pem).ok());
    EXPECT_TRUE(WriteOwnFile(dir_ / kIdentityFile, identity_pem).ok());
  }
  const std::string& path() const { return dir_.path(); }
  std::shared_ptr<Credentials> As(Role role) const {
    return std::make_shared<Credentials>(dir_.path(), role);
  }

 private:
  TempDir dir_;
};

// Two ends of a TCP connection over the loopback, non-blocking.
struct TestSockets {
  UniqueFd client;
  UniqueFd server;
};

inline TestSockets ConnectedTcp() {
  UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  TestSockets out;
  out.client.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(listener.get(), raw, size) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), raw, &size) != 0 || connect(out.client.get(), raw, size) != 0) {
    std::abort();
  }
  out.server.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  fcntl(out.client.get(), F_SETFL, O_NONBLOCK);
  return out;
}

// Waits for what the pump's thread says.
class Waiter {
 public:
  Pump::Done Callback() {
    return [state = state_](absl::StatusOr<Pump::Opened> opened) {
      const std::lock_guard lock(state->mutex);
      state->result.emplace(std::move(opened));
      state->changed.notify_all();
    };
  }
  // Ten seconds at most.
  absl::StatusOr<Pump::Opened>& Wait() {
    std::unique_lock lock(state_->mutex);
    const bool there = state_->changed.wait_for(lock, std::chrono::seconds(10),
                                                [this] { return state_->result.has_value(); });
    if (!there) state_->result.emplace(absl::DeadlineExceededError("nothing from the pump"));
    return *state_->result;
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<absl::StatusOr<Pump::Opened>> result;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// What arrives on a non-blocking descriptor: exactly `size` bytes, or less if it ends first.
inline std::string ReadExactly(int fd, size_t size) {
  std::string out;
  std::string buffer(64 << 10, '\0');
  while (out.size() < size) {
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, 10'000) <= 0) break;
    const ssize_t n = read(fd, buffer.data(), std::min(buffer.size(), size - out.size()));
    if (n <= 0) break;
    out.append(buffer, 0, static_cast<size_t>(n));
  }
  return out;
}

inline bool WriteExactly(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    pollfd waiting{.fd = fd, .events = POLLOUT, .revents = 0};
    if (poll(&waiting, 1, 10'000) <= 0) return false;
    const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) return false;
    if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace muster::tls
