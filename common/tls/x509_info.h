#pragma once

#include <absl/status/statusor.h>

#include "common/tls/certificate.h"
#include "common/tls/openssl.h"

namespace muster::tls {

// What is in a certificate. InvalidArgument: it is none of Muster's, with the reason.
absl::StatusOr<CertificateInfo> InfoOf(X509* certificate);

}  // namespace muster::tls
