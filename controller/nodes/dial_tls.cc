#include "controller/nodes/dial_tls.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/status.h"
#include "controller/nodes/dial.h"

namespace muster::nodes {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kPoll(50);

class TlsCarrier : public Carrier {
 public:
  explicit TlsCarrier(std::shared_ptr<tls::Pump::Epitaph> epitaph) : epitaph_(std::move(epitaph)) {}
  std::string LastWords() override { return epitaph_->Read(); }

 private:
  const std::shared_ptr<tls::Pump::Epitaph> epitaph_;
};

// Outlives the dialler if it gives up first.
struct Outcome {
  absl::Mutex mutex;
  std::optional<absl::StatusOr<tls::Pump::Opened>> opened ABSL_GUARDED_BY(mutex);
};

// A node without a certificate can't even say so.
absl::Status Explain(const absl::Status& why, const std::string& host) {
  if (!absl::IsUnavailable(why) && !absl::IsDeadlineExceeded(why)) return why;
  return absl::Status(why.code(), std::string(why.message()) +
                                      " in the TLS handshake: the musterd there may have no "
                                      "certificate yet (`muster cert push " +
                                      host + "`); its log says more");
}

milliseconds Left(steady_clock::time_point deadline) {
  return std::max(milliseconds(1), std::chrono::ceil<milliseconds>(deadline - steady_clock::now()));
}

}  // namespace

absl::StatusOr<Connection> DialTls(const TlsDial& dial, tls::Pump& pump,
                                   const std::shared_ptr<tls::Credentials>& credentials,
                                   const StopSignal& stop) {
  const auto deadline = steady_clock::now() + dial.timeout;
  // First: without certificates of our own there is nothing to dial for.
  if (const auto loaded = credentials->Get(); !loaded.ok()) {
    return absl::FailedPreconditionError(std::string(loaded.status().message()));
  }
  MUSTER_ASSIGN_OR_RETURN(UniqueFd fd, DialTcp(dial.address, dial.port, Left(deadline), stop));
  const auto outcome = std::make_shared<Outcome>();
  pump.Connect(std::move(fd), credentials, dial.host, Left(deadline),
               [outcome](absl::StatusOr<tls::Pump::Opened> opened) {
                 absl::MutexLock lock(&outcome->mutex);
                 outcome->opened = std::move(opened);
               });
  while (true) {
    {
      absl::MutexLock lock(&outcome->mutex);
      const auto known = [&outcome] {
        outcome->mutex.AssertHeld();
        return outcome->opened.has_value();
      };
      if (outcome->mutex.AwaitWithTimeout(absl::Condition(&known), absl::FromChrono(kPoll))) {
        if (!outcome->opened->ok()) return Explain(outcome->opened->status(), dial.host);
        return Connection{std::move((*outcome->opened)->fd),
                          std::make_unique<TlsCarrier>((*outcome->opened)->epitaph)};
      }
    }
    if (stop.is_set()) return absl::CancelledError("closed");
  }
}

}  // namespace muster::nodes
