#include "controller/cli/client.h"

namespace muster::cli {
absl::Status FromGrpc(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

absl::StatusOr<std::shared_ptr<Client::Stub>> Client::Get() {
  absl::MutexLock lock(&mutex_);
  if (stub_ != nullptr) return stub_;
  auto stub = connector_();
  if (stub.ok()) stub_ = *stub;
  return stub;
}

absl::StatusOr<std::shared_ptr<Client::Stub>> Client::Renew(const std::shared_ptr<Stub>& broken) {
  absl::MutexLock lock(&mutex_);
  if (stub_ != nullptr && stub_ != broken) return stub_;
  auto stub = connector_();
  if (stub.ok()) stub_ = *stub;
  return stub;
}

void Canceller::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  if (context_ != nullptr) context_->TryCancel();
}

bool Canceller::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

void Canceller::Watch(grpc::ClientContext* context) {
  absl::MutexLock lock(&mutex_);
  context_ = context;
  if (context_ != nullptr && cancelled_) context_->TryCancel();
}

}  // namespace muster::cli
