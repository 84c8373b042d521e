#include "controller/nodes/ssh/libssh_handle.h"

#include <libssh/callbacks.h>
#include <poll.h>

#include <algorithm>
#include <mutex>

#include "common/log.h"
#include "common/status.h"

namespace muster::nodes::ssh {
namespace {

constexpr size_t kLongestError = 500;

void WriteLog(int /*priority*/, const char* /*function*/, const char* message, void* /*unused*/) {
  log::Debug(std::string("libssh: ") + message);
}

}  // namespace

void FreeSession::operator()(ssh_session session) const {
  ssh_set_blocking(session, 0);
  ssh_disconnect(session);
  ssh_free(session);
}

SessionPtr NewSession() {
  static std::once_flag once;
  std::call_once(once, [] { ssh_init(); });
  // Both are the thread's.
  ssh_set_log_callback(WriteLog);
  ssh_set_log_level(SSH_LOG_WARN);
  SessionPtr session(ssh_new());
  if (session == nullptr) return session;
  ssh_set_blocking(session.get(), 0);
  const bool no = false;
  ssh_options_set(session.get(), SSH_OPTIONS_PROCESS_CONFIG, &no);
  ssh_options_set(session.get(), SSH_OPTIONS_KNOWNHOSTS, "/dev/null");
  ssh_options_set(session.get(), SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
  return session;
}

absl::StatusOr<int> Await(ssh_session session, int again, const Limits& limits,
                          const std::function<int()>& call) {
  while (true) {
    const int result = call();
    if (result != again) return result;
    // libssh would go on to say "again" to calls that wait for an answer.
    if (ssh_is_connected(session) == 0) return absl::UnavailableError(LastError(session));
    const bool writes = (ssh_get_poll_flags(session) & SSH_WRITE_PENDING) != 0;
    const auto events = static_cast<short>(POLLIN | (writes ? POLLOUT : 0));
    MUSTER_RETURN_IF_ERROR(WaitFd(ssh_get_fd(session), events, limits));
  }
}

std::string LastError(ssh_session session) {
  std::string text = ssh_get_error(session);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) >= 0x7f) c = ' ';
  }
  text.resize(std::min(text.size(), kLongestError));
  constexpr std::string_view kSocket = "Socket error: ";
  constexpr std::string_view kGoodbye = "Received SSH_MSG_DISCONNECT: ";
  if (text.substr(0, kGoodbye.size()) == kGoodbye) {
    return "the host said goodbye: " + text.substr(text.find(':', kGoodbye.size()) + 1);
  }
  if (text == "Socket error: disconnected" || text == "Remote host closed connection" ||
      text == "Socket error: Success") {
    return "the host closed the connection";
  }
  return text.substr(0, kSocket.size()) == kSocket ? text.substr(kSocket.size()) : text;
}

}  // namespace muster::nodes::ssh
