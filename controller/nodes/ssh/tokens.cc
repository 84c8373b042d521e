#include "controller/nodes/ssh/tokens.h"

#include <absl/strings/escaping.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "common/status.h"

namespace muster::nodes::ssh {
namespace {

// %C names a connection by a digest, for paths that must stay short.
std::string ConnectionHash(const TokenValues& values, const LocalUser& local) {
  const std::string text = local.host + values.host + std::to_string(values.port) + values.user;
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

}  // namespace

absl::StatusOr<std::string> ExpandTokens(std::string_view text, const Tokens& tokens) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) {
      return absl::InvalidArgumentError("'" + std::string(text) + "' ends with a lone %");
    }
    if (text[i] == '%') {
      out += '%';
    } else if (const auto found = tokens.find(text[i]); found != tokens.end()) {
      out += found->second;
    } else {
      return absl::InvalidArgumentError("unknown token %" + std::string(1, text[i]) + " in '" +
                                        std::string(text) + "'");
    }
  }
  return out;
}

absl::StatusOr<std::string> ExpandVariables(std::string_view text, const ConfigSource& source) {
  std::string out;
  while (true) {
    const size_t begin = text.find("${");
    out += text.substr(0, begin);
    if (begin == std::string_view::npos) return out;
    const size_t end = text.find('}', begin);
    if (end == std::string_view::npos) {
      return absl::InvalidArgumentError("no } after '" + std::string(text.substr(begin)) + "'");
    }
    const std::string name(text.substr(begin + 2, end - begin - 2));
    const std::optional<std::string> value = source.Env(name);
    if (!value) {
      return absl::InvalidArgumentError("the environment has no variable '" + name + "'");
    }
    out += *value;
    text.remove_prefix(end + 1);
  }
}

absl::StatusOr<std::string> ExpandHome(std::string_view path, const std::string& home) {
  if (path.empty() || path.front() != '~') return std::string(path);
  path.remove_prefix(1);
  if (!path.empty() && path.front() != '/') {
    return absl::InvalidArgumentError("'~" + std::string(path) +
                                      "': only ~/ is known here, write the whole path");
  }
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  return home + (!home.empty() && home.back() == '/' ? "" : "/") + std::string(path);
}

absl::StatusOr<std::string> ExpandPath(std::string_view path, const Tokens& tokens,
                                       const ConfigSource& source) {
  MUSTER_ASSIGN_OR_RETURN(const std::string from_home, ExpandHome(path, source.User().home));
  MUSTER_ASSIGN_OR_RETURN(const std::string with_variables, ExpandVariables(from_home, source));
  return ExpandTokens(with_variables, tokens);
}

Tokens MakeTokens(const TokenValues& values, const LocalUser& local) {
  return {{'C', ConnectionHash(values, local)},
          {'L', local.host.substr(0, local.host.find('.'))},
          {'d', local.home},
          {'h', values.host},
          {'i', std::to_string(local.uid)},
          {'k', values.alias},
          {'l', local.host},
          {'n', values.original},
          {'p', std::to_string(values.port)},
          {'r', values.user},
          {'u', local.name}};
}

}  // namespace muster::nodes::ssh
