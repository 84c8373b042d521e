#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <memory>
#include <string>

#include "common/tls/certificate.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace muster::tls {

// Names in a folder of credentials. An identity is one file, key and certificate together, so that
// replacing it is one step.
inline constexpr char kIdentityFile[] = "identity.pem";
inline constexpr char kTrustFile[] = "trust.pem";

// What one process shows to others and whom it trusts: `identity.pem` and `trust.pem` of a folder.
// They are looked at again for each connection, so that new files count without a restart;
// connections that stand are left alone. Any thread.
class Credentials {
 public:
  // The contexts for one role: TLS 1.3 only, certificates of both sides needed, no resumption.
  struct Loaded {
    std::shared_ptr<ssl_ctx_st> context;
    CertificateInfo own;
  };

  Credentials(std::string folder, Role role) : folder_(std::move(folder)), role_(role) {}

  // NotFound: there are no such files yet. FailedPrecondition: they are there, but no good. Both
  // name the file, the reason and the fix.
  absl::StatusOr<std::shared_ptr<const Loaded>> Get() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string& folder() const { return folder_; }

 private:
  // Tells whether the files are those that were read.
  struct Stamp {
    uint64_t inode = 0;
    int64_t size = -1;
    int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  Stamp StampOf(const char* name) const;
  absl::StatusOr<std::shared_ptr<const Loaded>> Load() const;

  const std::string folder_;
  const Role role_;
  absl::Mutex mutex_;
  Stamp identity_stamp_ ABSL_GUARDED_BY(mutex_);
  Stamp trust_stamp_ ABSL_GUARDED_BY(mutex_);
  absl::StatusOr<std::shared_ptr<const Loaded>> loaded_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::tls
