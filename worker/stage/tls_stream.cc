#include "worker/stage/tls_stream.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "common/status.h"

namespace muster::stage {
namespace {

constexpr char kIdentity[] = "muster-stage";
constexpr char kCipher[] = "TLS_AES_128_GCM_SHA256";  // what external keys of TLS 1.3 go with

unsigned CopyKey(SSL* ssl, unsigned char* out, unsigned most) {
  const auto* key = static_cast<const std::string*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  if (key->size() > most) return 0;
  std::copy(key->begin(), key->end(), out);
  return static_cast<unsigned>(key->size());
}

unsigned ClientKey(SSL* ssl, const char*, char* identity, unsigned most, unsigned char* key,
                   unsigned most_key) {
  if (sizeof kIdentity > most) return 0;
  std::copy_n(kIdentity, sizeof kIdentity, identity);
  return CopyKey(ssl, key, most_key);
}

unsigned ServerKey(SSL* ssl, const char* identity, unsigned char* key, unsigned most_key) {
  if (identity == nullptr || std::strcmp(identity, kIdentity) != 0) return 0;
  return CopyKey(ssl, key, most_key);
}

std::string LastError() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "";
  const char* reason = ERR_reason_error_string(code);
  return reason == nullptr ? absl::StrCat("error ", code) : reason;
}

}  // namespace

struct TlsStream::Context {
  std::string key;
  SSL_CTX* context = nullptr;
  SSL* ssl = nullptr;
  ~Context() {
    SSL_free(ssl);
    SSL_CTX_free(context);
    std::fill(key.begin(), key.end(), '\0');
  }
};

TlsStream::TlsStream() : context_(std::make_unique<Context>()) {}
TlsStream::~TlsStream() = default;

absl::StatusOr<std::unique_ptr<TlsStream>> TlsStream::Start(UniqueFd socket, Side side,
                                                            const std::string& key,
                                                            std::chrono::milliseconds limit) {
  static std::once_flag once;
  // The host's own OpenSSL configuration is of another version, and no concern of ours.
  std::call_once(once, [] { OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr); });
  if (key.size() != kTransferKeyBytes)
    return absl::InvalidArgumentError("the transfer's key has the wrong size");
  const bool server = side == Side::kServer;
  std::unique_ptr<TlsStream> stream(new TlsStream);
  Context& c = *stream->context_;
  c.key = key;
  c.context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
  if (c.context == nullptr || SSL_CTX_set_min_proto_version(c.context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(c.context, kCipher) != 1) {
    return absl::InternalError("TLS: " + LastError());
  }
  SSL_CTX_set_app_data(c.context, &c.key);
  SSL_CTX_set_num_tickets(c.context, 0);
  SSL_CTX_set_mode(c.context, SSL_MODE_AUTO_RETRY);
  // The other side must have the key: without it there is no certificate to trust either.
  if (server) {
    SSL_CTX_set_psk_server_callback(c.context, ServerKey);
  } else {
    SSL_CTX_set_psk_client_callback(c.context, ClientKey);
    SSL_CTX_set_verify(c.context, SSL_VERIFY_PEER, nullptr);
  }
  c.ssl = SSL_new(c.context);
  if (c.ssl == nullptr || SSL_set_fd(c.ssl, socket.get()) != 1)
    return absl::InternalError("TLS: " + LastError());
  stream->socket_ = std::move(socket);
  MUSTER_RETURN_IF_ERROR(stream->Handshake(server, limit));
  return stream;
}

// The limit is for all of it: who sends a byte now and then must not hold a place for long.
absl::Status TlsStream::Handshake(bool server, std::chrono::milliseconds limit) {
  using std::chrono::milliseconds;
  using SteadyClock = std::chrono::steady_clock;
  const auto end = SteadyClock::now() + limit;
  const int flags = fcntl(socket_.get(), F_GETFL);
  fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK);
  while (true) {
    errno = 0;
    const int result = server ? SSL_accept(context_->ssl) : SSL_connect(context_->ssl);
    if (result == 1) break;
    const int code = SSL_get_error(context_->ssl, result);
    if (code != SSL_ERROR_WANT_READ && code != SSL_ERROR_WANT_WRITE)
      return Error("handshake", result);
    const auto left = std::chrono::ceil<milliseconds>(end - SteadyClock::now());
    if (left.count() <= 0) return absl::UnavailableError("handshake: it takes too long");
    pollfd wait = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (code == SSL_ERROR_WANT_WRITE) wait.events = POLLOUT;
    poll(&wait, 1, static_cast<int>(left.count()));
  }
  fcntl(socket_.get(), F_SETFL, flags);
  return absl::OkStatus();
}

void TlsStream::SetPatience(std::chrono::milliseconds limit) {
  timeval time{};
  time.tv_sec = limit.count() / 1000;
  time.tv_usec = limit.count() % 1000 * 1000;
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

bool TlsStream::Interrupted(int result) const {
  if (errno != EINTR) return false;
  const int code = SSL_get_error(context_->ssl, result);
  return code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE;
}

absl::Status TlsStream::Error(const char* what, int result) const {
  const int system = errno;
  const int code = SSL_get_error(context_->ssl, result);
  const std::string reason = LastError();
  std::string why = reason;
  if (code == SSL_ERROR_ZERO_RETURN) why = "it closed the connection";
  if (code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE) why = "it is silent";
  if (code == SSL_ERROR_SYSCALL && reason.empty())
    why = system == 0        ? "it closed the connection"
          : system == EAGAIN ? "it is silent"
                             : std::strerror(system);
  return absl::UnavailableError(absl::StrCat(what, ": ", why));
}

absl::Status TlsStream::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t done = 0;
    errno = 0;
    const int result = SSL_write_ex(context_->ssl, bytes.data(), bytes.size(), &done);
    if (result != 1 && Interrupted(result)) continue;
    if (result != 1) return Error("write", result);
    bytes.remove_prefix(done);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TlsStream::Read(size_t size) {
  std::string bytes(size, '\0');
  size_t have = 0;
  while (have < size) {
    size_t done = 0;
    errno = 0;
    const int result = SSL_read_ex(context_->ssl, bytes.data() + have, size - have, &done);
    if (result != 1 && Interrupted(result)) continue;
    if (result != 1) return Error("read", result);
    have += done;
  }
  return bytes;
}

void TlsStream::Shutdown() {
  shutdown(socket_.get(), SHUT_RDWR);
}

}  // namespace muster::stage
