#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/tls/certificate.h"
#include "common/tls/issue.h"
#include "common/unique_fd.h"

namespace muster::certs {

// The authority on the controller's machine: a folder with its key, the certificates that it has
// issued, and the controller's own identity (common/tls/credentials.h reads that). One process at a
// time has it. Blocking; one thread.
//
//   ca.pem           key and certificate of the authority that signs
//   ca.previous.pem  certificate of the one before, while it is still trusted
//   trust.pem        the authorities that this controller trusts
//   identity.pem     the controller's own key and certificate
//   issued/HOST.pem  the last certificate of each host
class Authority {
 public:
  struct Days {
    int authority = 3650;
    int certificate = 365;
  };

  // Makes the authority and the controller's certificate. AlreadyExists when there is one.
  static absl::StatusOr<Authority> Init(const std::string& folder, const std::string& ca, Days days,
                                        const Clock& clock);
  // NotFound when there is none; FailedPrecondition when its files are no good. Both say what
  // helps.
  static absl::StatusOr<Authority> Open(const std::string& folder, Days days, const Clock& clock);

  const std::string& ca() const { return own_.identity.ca; }
  const tls::CertificateInfo& info() const { return own_; }
  // A second authority is still trusted.
  bool rotating() const { return !previous_pem_.empty(); }

  // A certificate for the host's request; also kept in issued/.
  absl::StatusOr<std::string> Issue(const std::string& host, std::string_view request_pem);
  // What the hosts are to trust.
  const std::string& trust_pem() const { return trust_pem_; }

  // A new key and certificate of the controller itself.
  absl::Status RenewController();
  // From now on a new authority signs; the old one stays trusted until FinishRotation, and the
  // controller's certificate stays its, so that hosts which do not know the new one yet let us in.
  // FailedPrecondition while a rotation is under way.
  absl::Status BeginRotation();
  // Trusts the new authority alone. FailedPrecondition when no rotation is under way, or when hosts
  // have certificates of the old one: they are named.
  absl::Status FinishRotation();

  // Hosts whose last certificate is not of the authority that signs now.
  absl::StatusOr<std::vector<std::string>> HostsOfPrevious() const;
  // The last certificate of each host.
  absl::StatusOr<std::map<std::string, tls::CertificateInfo>> Issued() const;
  // Strikes a host from the list: it is gone for good.
  absl::Status Forget(const std::string& host);
  // The controller's own.
  absl::StatusOr<tls::CertificateInfo> Controller() const;

 private:
  Authority(std::string folder, Days days, const Clock& clock)
      : folder_(std::move(folder)), days_(days), clock_(&clock) {}
  absl::Status Lock();
  absl::Status Load();
  std::string Path(std::string_view name) const { return folder_ + "/" + std::string(name); }
  tls::Validity ValidFor(int days) const;
  absl::Status MakeSigner(const std::string& ca);

  std::string folder_;
  Days days_;
  const Clock* clock_;
  UniqueFd lock_;
  tls::KeyAndCertificate signer_;
  tls::CertificateInfo own_;
  std::string previous_pem_;
  std::string trust_pem_;
};

}  // namespace muster::certs
