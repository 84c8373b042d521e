#include "controller/certs/authority.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/for_each_item.h"
#include "common/status.h"
#include "common/tls/credentials.h"
#include "common/tls/private_file.h"

namespace muster::certs {
namespace {

constexpr char kSignerFile[] = "ca.pem";
constexpr char kPreviousFile[] = "ca.previous.pem";
constexpr char kIssuedFolder[] = "issued";
constexpr std::string_view kPem = ".pem";
constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
// Hosts whose clocks are a little slow take a new certificate at once.
constexpr int64_t kEarlier = 3600;
constexpr int64_t kDay = 86400;

// Of a file with key and certificate: where the certificate begins.
absl::StatusOr<tls::KeyAndCertificate> Split(const std::string& pem) {
  const size_t at = pem.find(kBegin);
  if (at == std::string::npos) return absl::FailedPreconditionError("no certificate in it");
  return tls::KeyAndCertificate{pem.substr(0, at), pem.substr(at)};
}

// Also when it can't be looked at: it must not be made anew.
bool IsThere(const std::string& path) {
  return access(path.c_str(), F_OK) == 0 || errno != ENOENT;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

}  // namespace

tls::Validity Authority::ValidFor(int days) const {
  const int64_t now = clock_->RealtimeNs() / 1'000'000'000;
  return {.not_before_s = now - kEarlier, .not_after_s = now + days * kDay};
}

absl::Status Authority::Lock() {
  const std::string path = Path("lock");
  lock_.reset(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock_) return PosixError("open " + path);
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  if (errno != EWOULDBLOCK) return PosixError("lock " + path);
  return absl::FailedPreconditionError("another `muster cert` works in " + folder_ +
                                       ": wait for its end");
}

absl::Status Authority::MakeSigner(const std::string& ca) {
  MUSTER_ASSIGN_OR_RETURN(signer_, tls::MakeAuthority(ca, ValidFor(days_.authority)));
  MUSTER_ASSIGN_OR_RETURN(const auto infos, tls::ReadCertificates(signer_.certificate_pem));
  own_ = infos.front();
  return absl::OkStatus();
}

absl::StatusOr<Authority> Authority::Init(const std::string& folder, const std::string& ca,
                                          Days days, const Clock& clock) {
  MUSTER_RETURN_IF_ERROR(tls::CheckCaName(ca));
  MUSTER_RETURN_IF_ERROR(tls::MakeOwnFolder(folder).status());
  Authority authority(folder, days, clock);
  MUSTER_RETURN_IF_ERROR(authority.Lock());
  if (IsThere(authority.Path(kSignerFile))) {
    return absl::AlreadyExistsError(
        "there is an authority already: " + authority.Path(kSignerFile) +
        "; a new one beside it: `muster cert rotate --ca`");
  }
  MUSTER_RETURN_IF_ERROR(authority.MakeSigner(ca));
  authority.trust_pem_ = authority.signer_.certificate_pem;
  MUSTER_RETURN_IF_ERROR(tls::MakeOwnFolder(authority.Path(kIssuedFolder)).status());
  MUSTER_RETURN_IF_ERROR(tls::WriteOwnFile(authority.Path(tls::kTrustFile), authority.trust_pem_));
  MUSTER_RETURN_IF_ERROR(authority.RenewController());
  // Last: with it, all is there.
  MUSTER_RETURN_IF_ERROR(tls::WriteOwnFile(
      authority.Path(kSignerFile), authority.signer_.key_pem + authority.signer_.certificate_pem));
  return authority;
}

absl::StatusOr<Authority> Authority::Open(const std::string& folder, Days days,
                                          const Clock& clock) {
  Authority authority(folder, days, clock);
  if (!IsThere(authority.Path(kSignerFile))) {
    return absl::NotFoundError("no authority in " + folder + ": make one with `muster cert init`");
  }
  MUSTER_RETURN_IF_ERROR(authority.Lock());
  MUSTER_RETURN_IF_ERROR(authority.Load());
  return authority;
}

absl::Status Authority::Load() {
  const std::string path = Path(kSignerFile);
  MUSTER_ASSIGN_OR_RETURN(const std::string signer, tls::ReadOwnFile(path, true));
  auto split = Split(signer);
  if (!split.ok()) return Annotate(split.status(), path);
  signer_ = *std::move(split);
  auto infos = tls::ReadCertificates(signer_.certificate_pem);
  if (!infos.ok()) return Annotate(infos.status(), path);
  own_ = infos->front();
  if (const absl::Status fits = tls::CheckKeyFits(signer_.key_pem, signer_.certificate_pem);
      !fits.ok()) {
    return Annotate(fits, path);
  }
  auto previous = tls::ReadOwnFile(Path(kPreviousFile), false);
  if (!previous.ok() && !absl::IsNotFound(previous.status())) return previous.status();
  previous_pem_ = previous.ok() ? *previous : "";
  trust_pem_ = signer_.certificate_pem + previous_pem_;
  return absl::OkStatus();
}

absl::StatusOr<std::string> Authority::Issue(const std::string& host,
                                             std::string_view request_pem) {
  MUSTER_RETURN_IF_ERROR(tls::CheckHostName(host));
  MUSTER_ASSIGN_OR_RETURN(std::string pem,
                          tls::SignRequest(signer_, request_pem, tls::Identity::Node(ca(), host),
                                           ValidFor(days_.certificate)));
  MUSTER_RETURN_IF_ERROR(
      tls::WriteOwnFile(Path(kIssuedFolder) + "/" + host + std::string(kPem), pem));
  return pem;
}

absl::Status Authority::RenewController() {
  const tls::Identity identity = tls::Identity::Controller(ca());
  MUSTER_ASSIGN_OR_RETURN(const std::string key, tls::MakeKey());
  MUSTER_ASSIGN_OR_RETURN(const std::string request, tls::MakeRequest(key, identity));
  MUSTER_ASSIGN_OR_RETURN(const std::string pem, tls::SignRequest(signer_, request, identity,
                                                                  ValidFor(days_.certificate)));
  return tls::WriteOwnFile(Path(tls::kIdentityFile), key + pem);
}

absl::Status Authority::BeginRotation() {
  if (rotating()) {
    return absl::FailedPreconditionError(
        "two authorities are trusted already: end that rotation first with `muster cert rotate "
        "--finish`");
  }
  const std::string previous = signer_.certificate_pem;
  MUSTER_RETURN_IF_ERROR(MakeSigner(ca()));
  // What is trusted first, what signs last: a crash in between leaves the old authority at work.
  MUSTER_RETURN_IF_ERROR(
      tls::WriteOwnFile(Path(tls::kTrustFile), signer_.certificate_pem + previous));
  MUSTER_RETURN_IF_ERROR(tls::WriteOwnFile(Path(kPreviousFile), previous));
  MUSTER_RETURN_IF_ERROR(
      tls::WriteOwnFile(Path(kSignerFile), signer_.key_pem + signer_.certificate_pem));
  return Load();
}

absl::Status Authority::FinishRotation() {
  if (!rotating()) return absl::FailedPreconditionError("only one authority is trusted already");
  MUSTER_ASSIGN_OR_RETURN(const auto behind, HostsOfPrevious());
  if (!behind.empty()) {
    return absl::FailedPreconditionError(
        "these hosts still have certificates of the old authority: " + Joined(behind) +
        "; give them new ones (`muster cert rotate HOST...`), or strike those that are gone from "
        "the list (`muster cert forget HOST...`)");
  }
  MUSTER_RETURN_IF_ERROR(RenewController());
  MUSTER_RETURN_IF_ERROR(tls::WriteOwnFile(Path(tls::kTrustFile), signer_.certificate_pem));
  if (unlink(Path(kPreviousFile).c_str()) != 0) return PosixError("remove " + Path(kPreviousFile));
  return Load();
}

absl::StatusOr<std::map<std::string, tls::CertificateInfo>> Authority::Issued() const {
  std::map<std::string, tls::CertificateInfo> out;
  std::vector<std::string> names;
  const std::error_code error =
      ForEachItem(Path(kIssuedFolder), [&](const std::filesystem::path& path) {
        const std::string name = path.filename().string();
        if (name.ends_with(kPem)) names.push_back(name);
      });
  if (error) return PosixError("list " + Path(kIssuedFolder), error.value());
  for (const std::string& name : names) {
    const std::string path = Path(kIssuedFolder) + "/" + name;
    MUSTER_ASSIGN_OR_RETURN(const std::string pem, tls::ReadOwnFile(path, false));
    const auto infos = tls::ReadCertificates(pem);
    if (!infos.ok()) return Annotate(infos.status(), path);
    out.emplace(name.substr(0, name.size() - kPem.size()), infos->front());
  }
  return out;
}

absl::StatusOr<std::vector<std::string>> Authority::HostsOfPrevious() const {
  MUSTER_ASSIGN_OR_RETURN(const auto issued, Issued());
  std::vector<std::string> out;
  for (const auto& [host, info] : issued) {
    if (info.issuer_key != own_.own_key) out.push_back(host);
  }
  return out;
}

absl::Status Authority::Forget(const std::string& host) {
  MUSTER_RETURN_IF_ERROR(tls::CheckHostName(host));
  const std::string path = Path(kIssuedFolder) + "/" + host + std::string(kPem);
  if (unlink(path.c_str()) == 0) return absl::OkStatus();
  if (errno == ENOENT) return absl::NotFoundError("host " + host + " has no certificate");
  return PosixError("remove " + path);
}

absl::StatusOr<tls::CertificateInfo> Authority::Controller() const {
  const std::string path = Path(tls::kIdentityFile);
  MUSTER_ASSIGN_OR_RETURN(const std::string pem, tls::ReadOwnFile(path, true));
  const auto infos = tls::ReadCertificates(pem);
  if (!infos.ok()) return Annotate(infos.status(), path);
  return infos->front();
}

}  // namespace muster::certs
