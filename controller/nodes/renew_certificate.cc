#include "controller/nodes/renew_certificate.h"

#include <grpcpp/create_channel_posix.h>

#include "common/status.h"
#include "muster/v1/worker.grpc.pb.h"

namespace muster::nodes {
namespace {

constexpr int kMaxMessage = 1 << 20;

absl::Status ToAbsl(const grpc::Status& status, const std::string& what) {
  if (status.ok()) return absl::OkStatus();
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return absl::FailedPreconditionError(
        what + ": the musterd there is older than certificates: end it, and install this version");
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      what + ": " + status.error_message());
}

}  // namespace

absl::StatusOr<std::string> RenewCertificate(
    Connection connection, const NodeCertificate& node,
    const std::function<absl::StatusOr<SignedCertificate>(const std::string& request_pem)>& sign) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kMaxMessage);
  const auto channel =
      grpc::CreateCustomInsecureChannelFromFd("muster-worker", connection.fd.release(), arguments);
  const auto stub = v1::Worker::NewStub(channel);
  const auto deadline = std::chrono::system_clock::now() + node.timeout;

  v1::RequestCertificateRequest ask;
  ask.set_ca(node.ca);
  ask.set_host(node.host);
  ask.set_folder(node.folder);
  v1::RequestCertificateResponse asked;
  grpc::ClientContext ask_context;
  ask_context.set_deadline(deadline);
  MUSTER_RETURN_IF_ERROR(
      ToAbsl(stub->RequestCertificate(&ask_context, ask, &asked), "make a key there"));

  MUSTER_ASSIGN_OR_RETURN(const SignedCertificate certificate, sign(asked.request_pem()));

  v1::InstallCertificateRequest install;
  install.set_certificate_pem(certificate.certificate_pem);
  install.set_trust_pem(certificate.trust_pem);
  install.set_folder(asked.folder());
  v1::InstallCertificateResponse installed;
  grpc::ClientContext install_context;
  install_context.set_deadline(deadline);
  MUSTER_RETURN_IF_ERROR(ToAbsl(stub->InstallCertificate(&install_context, install, &installed),
                                "install the certificate there"));
  return asked.folder();
}

}  // namespace muster::nodes
