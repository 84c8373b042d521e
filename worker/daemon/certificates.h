#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "muster/v1/worker.pb.h"

// This node's certificate, made anew on a controller's wish: the key pair is made here and never
// leaves; the request goes out, the signed certificate comes back. Blocking; any thread.

namespace muster::worker {

// A new key waits beside the old one until its certificate comes. `own_folder`: of this daemon,
// used when the request names none.
absl::StatusOr<v1::RequestCertificateResponse> RequestCertificate(
    const v1::RequestCertificateRequest& request, const std::string& own_folder);

// Takes the certificate for the waiting key, and whom to trust; both count from the next
// connection. InvalidArgument or FailedPrecondition, and nothing has changed, unless it is a node's
// certificate for that key, signed by one of the authorities that come with it.
absl::StatusOr<v1::InstallCertificateResponse> InstallCertificate(
    const v1::InstallCertificateRequest& request, const std::string& own_folder);

}  // namespace muster::worker
