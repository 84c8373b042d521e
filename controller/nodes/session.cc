#include "controller/nodes/session.h"

#include <grpcpp/create_channel_posix.h>

#include <utility>

#include "common/version.h"

namespace muster::nodes {
namespace {

// The contract says 1 MiB a message; the rest is room for a Desired with many large environments.
constexpr int kMaxMessage = 4 << 20;

// The keepalive values find a partition or a stopped daemon within about 3 s, also on an idle
// stream; with gRPC's defaults it is never found.
grpc::ChannelArguments ChannelArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 2000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 3000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kMaxMessage);
  arguments.SetMaxSendMessageSize(kMaxMessage);
  return arguments;
}

// gRPC's words for a connection that has gone, in ours.
std::string Explain(const std::string& message) {
  const auto says = [&message](const char* words) {
    return message.find(words) != std::string::npos;
  };
  if (says("keepalive watchdog")) {
    return "no sign of life for some seconds: the network is cut, or the worker or its machine is "
           "stopped";
  }
  if (says("Socket closed") || says("Connection reset") || says("recvmsg") || says("GOAWAY")) {
    return "the worker ended or closed the connection (" + message + ")";
  }
  return message;
}

absl::Status ToAbsl(const grpc::Status& status) {
  if (status.ok()) return absl::UnavailableError("the worker closed the stream");
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      Explain(status.error_message()));
}

}  // namespace

Session::Session(Options options, LinkListener& listener, LogSink& sink)
    : options_(std::move(options)), listener_(listener), sink_(sink) {}

absl::Status Session::Run(UniqueFd connection, const StopSignal& stop,
                          const std::shared_ptr<Session>& self) {
  self_ = self;
  const auto channel = grpc::CreateCustomInsecureChannelFromFd(
      "muster-worker", connection.release(), ChannelArguments());
  const auto stub = v1::Worker::NewStub(channel);
  stub->async()->Attach(&context_, this);
  AddHold();  // writes are started from outside of reactions
  v1::AttachRequest hello;
  hello.mutable_hello()->set_protocol(kProtocol);
  hello.mutable_hello()->set_controller_id(options_.controller_id);
  hello.mutable_hello()->set_version(kVersion);
  StartRead(&incoming_);
  {
    absl::MutexLock lock(&mutex_);
    open_ = true;
    queue_.push_front(std::move(hello));
    WriteNext();
  }
  StartCall();
  // Close() may have come before this session was known to the link.
  if (stop.is_set()) Abort(absl::CancelledError("closed"));
  const auto heard = [this] {
    mutex_.AssertHeld();
    return up_ || done_;
  };
  bool answered = false;
  {
    absl::MutexLock lock(&mutex_);
    answered =
        mutex_.AwaitWithTimeout(absl::Condition(&heard), absl::FromChrono(options_.hello_timeout));
  }
  if (!answered) {
    Abort(absl::DeadlineExceededError("connected, but no hello from a worker within " +
                                      std::to_string(options_.hello_timeout.count()) +
                                      " ms: is it stopped, or does something else listen there?"));
  }
  if (stop.is_set()) Abort(absl::CancelledError("closed"));
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&done_));
  return why_;
}

bool Session::was_up() const {
  absl::MutexLock lock(&mutex_);
  return up_;
}

void Session::Send(v1::AttachRequest message) {
  const size_t bytes = message.ByteSizeLong();
  absl::Status why;
  {
    absl::MutexLock lock(&mutex_);
    if (!up_ || done_) return;
    if (queued_bytes_ + bytes > options_.max_queued_bytes) {
      why = absl::ResourceExhaustedError(
          "the worker takes no messages: " + std::to_string(queue_.size()) + " are waiting");
    } else {
      queued_bytes_ += bytes;
      queue_.push_back(std::move(message));
      WriteNext();
    }
  }
  if (!why.ok()) Abort(std::move(why));
}

void Session::Ack(const v1::LogAck& ack) {
  absl::MutexLock lock(&mutex_);
  if (done_) return;
  acks_[StreamKey(ack.id().controller_id(), ack.id().job_id(), ack.id().attempt(), ack.rank(),
                  ack.stream())] = ack;
  WriteNext();
}

void Session::Abort(absl::Status why) {
  {
    absl::MutexLock lock(&mutex_);
    if (done_) return;
    if (why_.ok()) why_ = std::move(why);
  }
  context_.TryCancel();
}

void Session::WriteNext() {
  if (!open_ || writing_) return;
  if (!queue_.empty()) {
    outgoing_ = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= std::min(queued_bytes_, outgoing_.ByteSizeLong());
  } else if (!acks_.empty()) {
    outgoing_.Clear();
    *outgoing_.mutable_log_ack() = std::move(acks_.begin()->second);
    acks_.erase(acks_.begin());
  } else {
    return;
  }
  writing_ = true;
  StartWrite(&outgoing_);
}

void Session::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  if (ok) WriteNext();
}

void Session::OnReadDone(bool ok) {
  if (ok) {
    Dispatch();
    StartRead(&incoming_);
    return;
  }
  {
    absl::MutexLock lock(&mutex_);
    open_ = false;
  }
  RemoveHold();
}

void Session::Dispatch() {
  if (!was_up()) {
    if (absl::Status status = CheckHello(incoming_); !status.ok()) {
      Abort(std::move(status));
      return;
    }
    {
      absl::MutexLock lock(&mutex_);
      up_ = true;
    }
    listener_.OnUp(options_.host, incoming_.hello());
    return;
  }
  if (incoming_.has_log()) {
    sink_.OnLog(options_.host, std::move(*incoming_.mutable_log()),
                [session = self_](const v1::LogAck& ack) {
                  if (const auto alive = session.lock()) alive->Ack(ack);
                });
    return;
  }
  listener_.OnMessage(options_.host, std::move(incoming_));
}

absl::Status Session::CheckHello(const v1::AttachResponse& message) const {
  if (!message.has_hello()) {
    return absl::FailedPreconditionError("the first message is no hello: this is no musterd");
  }
  if (message.hello().protocol() != kProtocol) {
    return absl::FailedPreconditionError(
        "musterd " + message.hello().version() + " speaks protocol " +
        std::to_string(message.hello().protocol()) + ", this controller (muster " + kVersion +
        ") speaks " + std::to_string(kProtocol) + ": install the same version on both");
  }
  return absl::OkStatus();
}

void Session::OnDone(const grpc::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (why_.ok()) why_ = ToAbsl(status);
  done_ = true;
}

}  // namespace muster::nodes
