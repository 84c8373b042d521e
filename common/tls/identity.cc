#include "common/tls/identity.h"

#include <algorithm>
#include <cctype>

#include "common/status.h"

namespace muster::tls {
namespace {

constexpr std::string_view kScheme = "muster://";
constexpr std::string_view kControllerPath = "@controller";  // '@' is in no host's name
constexpr size_t kLongestCa = 64;
constexpr size_t kLongestHost = 253;

absl::Status CheckName(std::string_view what, std::string_view name, std::string_view extra,
                       size_t longest) {
  const auto allowed = [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           extra.find(c) != std::string_view::npos;
  };
  if (!name.empty() && name.size() <= longest && name.front() != '.' &&
      std::all_of(name.begin(), name.end(), allowed)) {
    return absl::OkStatus();
  }
  std::string listed;
  for (const char c : extra) listed += std::string(" ") + c;
  std::string shown(name.substr(0, longest + 1));
  std::replace_if(
      shown.begin(), shown.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }, '?');
  return absl::InvalidArgumentError(std::string(what) + " '" + shown + "': expected 1 to " +
                                    std::to_string(longest) + " of A-Z a-z 0-9" + listed +
                                    ", not starting with a dot");
}

}  // namespace

std::string Identity::Uri() const {
  return std::string(kScheme) + ca + "/" +
         (role == Role::kController ? std::string(kControllerPath) : host);
}

std::string Identity::Describe() const {
  return role == Role::kController ? "the controller" : "host " + host;
}

absl::Status CheckCaName(std::string_view name) {
  return CheckName("name of an authority", name, "._-", kLongestCa);
}

absl::Status CheckHostName(std::string_view host) {
  return CheckName("host", host, "._:%-", kLongestHost);
}

absl::StatusOr<Identity> ParseIdentity(std::string_view uri) {
  const std::string shown(uri.substr(0, 300));
  if (!uri.starts_with(kScheme)) {
    return absl::InvalidArgumentError("'" + shown + "' does not begin with muster://");
  }
  uri.remove_prefix(kScheme.size());
  const size_t slash = uri.find('/');
  if (slash == std::string_view::npos) {
    return absl::InvalidArgumentError("'" + shown + "' is not muster://CA/HOST");
  }
  Identity identity;
  identity.ca = std::string(uri.substr(0, slash));
  MUSTER_RETURN_IF_ERROR(CheckCaName(identity.ca));
  const std::string_view path = uri.substr(slash + 1);
  if (path == kControllerPath) {
    identity.role = Role::kController;
    return identity;
  }
  MUSTER_RETURN_IF_ERROR(CheckHostName(path));
  identity.host = std::string(path);
  return identity;
}

}  // namespace muster::tls
