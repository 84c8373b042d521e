#include "controller/plan/env_file.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include <algorithm>

#include "common/status.h"
#include "controller/plan/environment.h"

namespace muster::plan {
namespace {

constexpr size_t kMostErrors = 20;
constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kExport = "export";

std::string_view Trim(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  while (!text.empty() && kBlanks.find(text.back()) != std::string_view::npos) {
    text.remove_suffix(1);
  }
  return text;
}

// Only blanks or a comment.
bool IsRemark(std::string_view text) {
  text = Trim(text);
  return text.empty() || text.front() == '#';
}

// What follows the opening quote.
absl::StatusOr<std::string> Quoted(std::string_view text, char quote) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == quote) {
      const std::string_view rest = text.substr(i + 1);
      if (IsRemark(rest)) return out;
      return absl::InvalidArgumentError(fmt::format(
          "text after the closing {} of the value; put the whole value in '...'", quote));
    }
    const bool escape = quote == '"' && text[i] == '\\' && i + 1 < text.size() &&
                        std::string_view("\"\\$`").find(text[i + 1]) != std::string_view::npos;
    if (escape) ++i;
    out += text[i];
  }
  return absl::InvalidArgumentError(
      fmt::format("the value's {} is not closed on this line; a value is one line", quote));
}

// Everything but a comment, which begins with a blank and '#'.
std::string Bare(std::string_view text) {
  for (size_t at = text.find('#'); at != std::string_view::npos; at = text.find('#', at + 1)) {
    if (at > 0 && kBlanks.find(text[at - 1]) != std::string_view::npos) {
      text = text.substr(0, at);
      break;
    }
  }
  return std::string(Trim(text));
}

absl::Status CheckName(std::string_view name) {
  // What `export` takes; more would be comments and quotes that went wrong.
  const bool plain = std::all_of(
      name.begin(), name.end(), [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
  if (!plain || !IsVariableName(name)) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not a name for an environment variable; write NAME=VALUE",
                    absl::CHexEscape({name.data(), std::min<size_t>(name.size(), 60)})));
  }
  if (IsSetByMuster(name)) {
    return absl::InvalidArgumentError(
        fmt::format("{} is set by muster for each rank; remove the line", name));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<EnvFileVariable>> ParseLine(std::string_view line) {
  if (IsRemark(line)) return std::nullopt;
  if (line.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError("a NUL byte; is this a text file?");
  }
  line = Trim(line);
  if (line.starts_with(kExport) && line.size() > kExport.size() &&
      kBlanks.find(line[kExport.size()]) != std::string_view::npos) {
    line = Trim(line.substr(kExport.size()));
  }
  EnvFileVariable variable;
  const size_t equal = line.find('=');
  const std::string name =
      equal == std::string_view::npos ? Bare(line) : std::string(Trim(line.substr(0, equal)));
  MUSTER_RETURN_IF_ERROR(CheckName(name));
  variable.name = name;
  if (equal == std::string_view::npos) return variable;
  const std::string_view value = Trim(line.substr(equal + 1));
  const bool quoted = !value.empty() && (value.front() == '\'' || value.front() == '"');
  if (quoted) {
    MUSTER_ASSIGN_OR_RETURN(variable.value, Quoted(value.substr(1), value.front()));
  } else {
    variable.value = IsRemark(value) && !value.empty() ? "" : Bare(value);
  }
  return variable;
}

void Set(const std::string& name, const std::string& value, std::vector<v1::EnvVar>& out) {
  for (v1::EnvVar& variable : out) {
    if (variable.name() != name) continue;
    variable.set_value(value);
    return;
  }
  out.emplace_back().set_name(name);
  out.back().set_value(value);
}

std::string Home(const Surroundings& surroundings) {
  return surroundings.get_env("HOME").value_or("");
}

absl::StatusOr<EnvFileResult> Read(const std::string& path, const Surroundings& surroundings) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, surroundings.read_file(path));
  MUSTER_ASSIGN_OR_RETURN(const auto lines, ParseEnvFile(text, path));
  EnvFileResult out{path, {}};
  for (const EnvFileVariable& line : lines) {
    const auto value = line.value ? line.value : surroundings.get_env(line.name);
    if (!value) {
      return absl::InvalidArgumentError(
          fmt::format("{}:{}: {} is not set here; write {}=VALUE, or remove the line", path,
                      line.line, line.name, line.name));
    }
    Set(line.name, *value, out.variables);
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<EnvFileVariable>> ParseEnvFile(std::string_view text,
                                                          const std::string& source) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<EnvFileVariable> out;
  std::vector<std::string> errors;
  for (uint32_t number = 1; !text.empty() && errors.size() < kMostErrors; ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    auto variable = ParseLine(line);
    if (!variable.ok()) {
      errors.push_back(
          fmt::format("{}:{}: {}", source, number, std::string(variable.status().message())));
    } else if (*variable) {
      (*variable)->line = number;
      out.push_back(**std::move(variable));
    }
  }
  if (!errors.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
  return out;
}

absl::StatusOr<std::vector<EnvFileResult>> ReadOwnEnvFiles(const std::string& working_dir,
                                                           const Surroundings& surroundings) {
  const std::string deepspeed = surroundings.get_env("DS_ENV_FILE").value_or(".deepspeed_env");
  std::vector<std::string> paths;
  for (const std::string& name : {deepspeed, std::string(".muster_env")}) {
    if (name.starts_with('/')) {
      paths.push_back(name);
      continue;
    }
    if (const std::string home = Home(surroundings); !home.empty()) {
      paths.push_back(absl::StrCat(home, "/", name));
    }
    paths.push_back(absl::StrCat(working_dir, "/", name));
  }
  std::vector<EnvFileResult> out;
  for (auto path = paths.begin(); path != paths.end(); ++path) {
    // The home folder may be the working folder.
    if (std::find(paths.begin(), path, *path) != path) continue;
    absl::StatusOr<EnvFileResult> file = Read(*path, surroundings);
    if (absl::IsNotFound(file.status())) continue;
    if (!file.ok()) return file.status();
    out.push_back(*std::move(file));
  }
  return out;
}

absl::StatusOr<EnvFileResult> ReadEnvFile(const std::string& path,
                                          const Surroundings& surroundings) {
  std::string resolved = path;
  if (path.starts_with("~/")) {
    resolved = Home(surroundings) + path.substr(1);
  } else if (!path.starts_with('/')) {
    resolved = surroundings.working_dir + "/" + path;
  }
  return Read(resolved, surroundings);
}

}  // namespace muster::plan
