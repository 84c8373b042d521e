#include "controller/cli/cert_hosts.h"

#include <absl/synchronization/mutex.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "common/status.h"
#include "controller/nodes/link_factory.h"
#include "controller/nodes/renew_certificate.h"

namespace muster::cli {
namespace {

constexpr size_t kAtATime = 64;

}  // namespace

std::vector<CertResult> RenewHosts(const CertHosts& what, certs::Authority& authority,
                                   const std::function<void(const CertResult&)>& report) {
  nodes::LinkOptions options;
  options.tls_dir = what.folder;
  const nodes::StopSignal never;
  absl::Mutex mutex;  // the authority, and the reports
  std::vector<CertResult> results;
  for (const v1::Host& host : what.hosts) results.push_back({host.host(), std::string()});

  const auto renew = [&](const v1::Host& host) -> absl::StatusOr<std::string> {
    MUSTER_ASSIGN_OR_RETURN(const nodes::Dialer dial,
                            nodes::MakeDialer(options, host, what.transports));
    MUSTER_ASSIGN_OR_RETURN(nodes::Connection connection, dial(never));
    return nodes::RenewCertificate(
        std::move(connection),
        {.ca = authority.ca(), .host = host.host(), .folder = what.remote_folder},
        [&](const std::string& request) -> absl::StatusOr<nodes::SignedCertificate> {
          absl::MutexLock lock(&mutex);
          MUSTER_ASSIGN_OR_RETURN(std::string pem, authority.Issue(host.host(), request));
          return nodes::SignedCertificate{std::move(pem), authority.trust_pem()};
        });
  };
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < results.size(); i = next++) {
      absl::StatusOr<std::string> folder = renew(what.hosts[i]);
      absl::MutexLock lock(&mutex);
      results[i].folder = std::move(folder);
      report(results[i]);
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < std::min(kAtATime, results.size()); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  return results;
}

}  // namespace muster::cli
