#include "worker/daemon/certificates.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "common/log.h"
#include "common/status.h"
#include "common/tls/certificate.h"
#include "common/tls/credentials.h"
#include "common/tls/issue.h"
#include "common/tls/private_file.h"

namespace muster::worker {
namespace {

constexpr char kPendingKey[] = "pending.key.pem";
constexpr size_t kLongestPath = 1024;

absl::StatusOr<std::string> FolderOf(const std::string& asked, const std::string& own_folder) {
  if (asked.empty()) return own_folder;
  const bool plain = asked.front() == '/' && asked.size() <= kLongestPath &&
                     asked.find('\0') == std::string::npos &&
                     std::filesystem::path(asked).lexically_normal().string() == asked;
  if (plain) return asked;
  return absl::InvalidArgumentError(
      "folder for certificates: expected an absolute path without . or .. in it");
}

// That it is what Credentials will accept, before anything is replaced.
absl::Status CheckOffer(const v1::InstallCertificateRequest& request, const std::string& key) {
  MUSTER_ASSIGN_OR_RETURN(const auto own, tls::ReadCertificates(request.certificate_pem()));
  MUSTER_ASSIGN_OR_RETURN(const auto trusted, tls::ReadCertificates(request.trust_pem()));
  if (own.size() != 1 || own.front().is_authority ||
      own.front().identity.role != tls::Role::kNode) {
    return absl::InvalidArgumentError("not one certificate of a node");
  }
  const auto& certificate = own.front();
  const bool all_of_it =
      std::all_of(trusted.begin(), trusted.end(), [&](const tls::CertificateInfo& authority) {
        return authority.is_authority && authority.identity.ca == certificate.identity.ca;
      });
  if (!all_of_it) {
    return absl::InvalidArgumentError("the certificate and the authorities do not fit together");
  }
  MUSTER_RETURN_IF_ERROR(tls::CheckSigned(request.certificate_pem(), request.trust_pem()));
  return tls::CheckKeyFits(key, request.certificate_pem());
}

}  // namespace

absl::StatusOr<v1::RequestCertificateResponse> RequestCertificate(
    const v1::RequestCertificateRequest& request, const std::string& own_folder) {
  MUSTER_RETURN_IF_ERROR(tls::CheckCaName(request.ca()));
  MUSTER_RETURN_IF_ERROR(tls::CheckHostName(request.host()));
  MUSTER_ASSIGN_OR_RETURN(const std::string folder, FolderOf(request.folder(), own_folder));
  MUSTER_RETURN_IF_ERROR(tls::MakeOwnFolder(folder).status());
  MUSTER_ASSIGN_OR_RETURN(const std::string key, tls::MakeKey());
  v1::RequestCertificateResponse response;
  MUSTER_ASSIGN_OR_RETURN(*response.mutable_request_pem(),
                          tls::MakeRequest(key, tls::Identity::Node(request.ca(), request.host())));
  MUSTER_RETURN_IF_ERROR(tls::WriteOwnFile(folder + "/" + kPendingKey, key));
  response.set_folder(folder);
  return response;
}

absl::StatusOr<v1::InstallCertificateResponse> InstallCertificate(
    const v1::InstallCertificateRequest& request, const std::string& own_folder) {
  MUSTER_ASSIGN_OR_RETURN(const std::string folder, FolderOf(request.folder(), own_folder));
  // If it is another user's, so is the key: root has given it away (WriteOwnFile).
  MUSTER_ASSIGN_OR_RETURN(const uid_t owner, tls::MakeOwnFolder(folder));
  const std::string pending = folder + "/" + kPendingKey;
  const auto key = tls::ReadOwnFile(pending, true, owner);
  if (absl::IsNotFound(key.status())) {
    return absl::FailedPreconditionError("no key waits in " + folder + ": ask for a request first");
  }
  if (!key.ok()) return key.status();
  MUSTER_RETURN_IF_ERROR(CheckOffer(request, *key));
  MUSTER_RETURN_IF_ERROR(tls::WriteOwnFile(folder + "/" + tls::kTrustFile, request.trust_pem()));
  MUSTER_RETURN_IF_ERROR(
      tls::WriteOwnFile(folder + "/" + tls::kIdentityFile, *key + request.certificate_pem()));
  unlink(pending.c_str());
  log::Info("new certificate in " + folder);
  return v1::InstallCertificateResponse();
}

}  // namespace muster::worker
