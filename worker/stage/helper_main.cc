#include "worker/stage/helper_main.h"

#include <absl/synchronization/mutex.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "worker/stage/frame.h"
#include "worker/stage/transfer.h"

namespace muster::stage {
namespace {

bool ReadFully(std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = read(STDIN_FILENO, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

void WriteFully(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);  // the daemon has gone
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace

void RunStageHelper(const std::string& state_dir) {
  signal(SIGPIPE, SIG_IGN);
  absl::Mutex mutex;
  Transfer transfer(state_dir, [&mutex](const v1::StageReport& report) {
    const std::string frame = Frame(report.SerializeAsString());
    absl::MutexLock lock(&mutex);
    WriteFully(frame);
  });
  std::string header(kFrameHeaderBytes, '\0');
  while (ReadFully(header)) {
    const size_t size = FrameSize(header);
    if (size > kMaxFrameBytes) _exit(1);
    std::string message(size, '\0');
    v1::StageOrder order;
    if (!ReadFully(message) || !order.ParseFromString(message)) _exit(1);
    transfer.Take(order);
  }
  _exit(0);  // not exit: threads may hang in the kernel
}

}  // namespace muster::stage
