#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "controller/certs/authority.h"
#include "controller/cli/render.h"

namespace muster::cli {

// The days before its end from which a certificate is warned of.
inline constexpr int kCertificateWarningDays = 14;

// "node1: its certificate ends in 3 days", or "" while there is time; `ends_s` 0: there is none.
std::string CertificateWarning(const std::string& whose, int64_t ends_s, int64_t now_s);

// "in 200 days", "in 5 days: renew it", "EXPIRED 3 days ago", "not before ...".
std::string DescribeValidity(const tls::CertificateInfo& info, int64_t now_s);

// `muster cert list`: the authority, the controller and each host, with their ends.
absl::StatusOr<std::string> CertTable(const certs::Authority& authority, int64_t now_s,
                                      const Style& style);
absl::StatusOr<std::string> CertJson(const certs::Authority& authority, int64_t now_s);

}  // namespace muster::cli
