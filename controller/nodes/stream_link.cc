#include "controller/nodes/stream_link.h"

#include <utility>

#include "common/backoff.h"
#include "common/status.h"

namespace muster::nodes {

StreamLink::StreamLink(std::string host, std::string description, std::string place,
                       LinkOptions options, Dialer dialer, LinkListener& listener, LogSink& sink)
    : host_(std::move(host)),
      description_(std::move(description)),
      place_(std::move(place)),
      options_(std::move(options)),
      dialer_(std::move(dialer)),
      listener_(listener),
      sink_(sink) {}

void StreamLink::Start() {
  if (!thread_.joinable() && !stop_.is_set()) thread_ = std::thread([this] { Run(); });
}

void StreamLink::Send(v1::AttachRequest message) {
  std::shared_ptr<Session> session;
  {
    absl::MutexLock lock(&mutex_);
    session = session_;
  }
  if (session) session->Send(std::move(message));
}

void StreamLink::Stop() {
  stop_.Set();
  std::shared_ptr<Session> session;
  {
    absl::MutexLock lock(&mutex_);
    session = session_;
  }
  if (session) session->Abort(absl::CancelledError("closed"));
}

void StreamLink::Close() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void StreamLink::Run() {
  Backoff backoff(options_.backoff_initial, options_.backoff_maximum);
  while (!stop_.is_set()) {
    bool up = false;
    const absl::Status why = Connect(up);
    if (stop_.is_set()) return;
    listener_.OnLost(host_, Annotate(why, place_));
    if (up) backoff.Reset();
    // Another version, or another controller in our place: trying at speed would change nothing.
    const bool refused = absl::IsFailedPrecondition(why) || absl::IsAborted(why);
    stop_.WaitFor(refused ? options_.refused_pause : backoff.Next());
  }
}

absl::Status StreamLink::Connect(bool& up) {
  MUSTER_ASSIGN_OR_RETURN(Connection connection, dialer_(stop_));
  const auto session =
      std::make_shared<Session>(Session::Options{.host = host_,
                                                 .controller_id = options_.controller_id,
                                                 .hello_timeout = options_.connect_timeout,
                                                 .max_queued_bytes = options_.max_queued_bytes},
                                listener_, sink_);
  {
    absl::MutexLock lock(&mutex_);
    session_ = session;
  }
  absl::Status why = session->Run(std::move(connection.fd), stop_, session);
  {
    absl::MutexLock lock(&mutex_);
    session_.reset();
  }
  up = session->was_up();
  if (connection.carrier == nullptr || stop_.is_set()) return why;
  const std::string last_words = connection.carrier->LastWords();
  if (last_words.empty()) return why;
  return absl::Status(why.code(), std::string(why.message()) + "; " + last_words);
}

}  // namespace muster::nodes
