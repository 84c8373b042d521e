#include "controller/plan/secrets.h"

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/status.h"

namespace muster::plan {
namespace {

constexpr size_t kMaxSecret = 64 << 10;

absl::StatusOr<std::string> ReadSecret(const SecretSource& source, const Recipe& recipe,
                                       const Surroundings& surroundings) {
  if (!source.env.empty()) {
    std::optional<std::string> value = surroundings.get_env(source.env);
    if (!value) {
      return absl::InvalidArgumentError(fmt::format("{} is not set here", source.env));
    }
    return *std::move(value);
  }
  const std::string path = ResolvePath(source.file, recipe, surroundings);
  MUSTER_ASSIGN_OR_RETURN(std::string value, surroundings.read_file(path));
  if (value.ends_with('\n')) value.pop_back();
  if (value.ends_with('\r')) value.pop_back();
  return value;
}

}  // namespace

std::string ResolvePath(const std::string& path, const Recipe& recipe,
                        const Surroundings& surroundings) {
  if (path.starts_with("~/")) {
    return surroundings.get_env("HOME").value_or("") + path.substr(1);
  }
  const size_t slash = recipe.source.rfind('/');
  if (path.starts_with('/') || slash == std::string::npos) return path;
  return recipe.source.substr(0, slash + 1) + path;
}

absl::StatusOr<std::vector<v1::EnvVar>> ResolveSecrets(const Recipe& recipe,
                                                       const Surroundings& surroundings) {
  std::vector<v1::EnvVar> out;
  for (const SecretSource& source : recipe.secrets) {
    const std::string where = fmt::format("{}: secret {}", recipe.source, source.name);
    const absl::StatusOr<std::string> value = ReadSecret(source, recipe, surroundings);
    if (!value.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: {}", where, std::string(value.status().message())));
    }
    if (value->empty()) return absl::InvalidArgumentError(where + ": its value is empty");
    if (value->size() > kMaxSecret || value->find('\0') != std::string::npos) {
      return absl::InvalidArgumentError(
          fmt::format("{}: not a text of at most {} KiB", where, kMaxSecret >> 10));
    }
    v1::EnvVar& variable = out.emplace_back();
    variable.set_name(source.name);
    variable.set_value(*value);
  }
  return out;
}

absl::Status CheckNotExposed(const v1::JobSpec& spec) {
  constexpr size_t kShortest = 8;
  for (const v1::EnvVar& secret : spec.secrets()) {
    if (secret.value().size() < kShortest) continue;
    const auto exposed = [&](const std::string& text) {
      return text.find(secret.value()) != std::string::npos;
    };
    std::string place;
    for (int i = 0; i < spec.command_size(); ++i) {
      if (exposed(spec.command(i))) place = fmt::format("word {} of the command", i + 1);
    }
    for (const v1::Flag& flag : spec.flags()) {
      if (std::any_of(flag.values().begin(), flag.values().end(), exposed)) {
        place = "flag " + flag.name();
      }
    }
    for (const v1::EnvVar& variable : spec.env()) {
      if (exposed(variable.value())) place = "environment variable " + variable.name();
    }
    if (!place.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("the value of secret {} also stands in {}, where others can read it: let the "
                      "program take it from its environment",
                      secret.name(), place));
    }
  }
  return absl::OkStatus();
}

bool IsSecretName(std::string_view name) {
  constexpr std::array<std::string_view, 9> kEndings = {"API_KEY",     "ACCESS_KEY", "SECRET_KEY",
                                                        "PRIVATE_KEY", "_TOKEN",     "SECRET",
                                                        "PASSWORD",    "PASSWD",     "CREDENTIALS"};
  const std::string upper = absl::AsciiStrToUpper({name.data(), name.size()});
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&upper](std::string_view ending) { return upper.ends_with(ending); });
}

std::string MaskSecrets(std::string text, const std::vector<v1::EnvVar>& secrets) {
  constexpr size_t kShortest = 4;
  constexpr std::string_view kMask = "****";
  std::vector<std::string> values;
  for (const v1::EnvVar& secret : secrets) {
    if (secret.value().size() >= kShortest) values.push_back(secret.value());
  }
  // The longest first, so that a value which contains another disappears whole.
  std::sort(values.begin(), values.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  for (const std::string& value : values) {
    for (size_t at = text.find(value); at != std::string::npos;
         at = text.find(value, at + kMask.size())) {
      text.replace(at, value.size(), kMask);
    }
  }
  return text;
}

}  // namespace muster::plan
