#include "controller/api/connect.h"

#include <grpcpp/create_channel_posix.h>

#include "common/status.h"
#include "common/unix_socket.h"
#include "controller/api/state_dir.h"

namespace muster::api {
namespace {

// A job of thousands of ranks with their error records is one message.
constexpr int kMaxMessage = 64 << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<v1::Control::Stub>> Connect(const std::string& state_dir) {
  MUSTER_ASSIGN_OR_RETURN(UniqueFd fd, ConnectUnix(SocketPath(state_dir)));
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMaxMessage);
  arguments.SetMaxSendMessageSize(kMaxMessage);
  return v1::Control::NewStub(
      grpc::CreateCustomInsecureChannelFromFd("muster-controller", fd.release(), arguments));
}

}  // namespace muster::api
