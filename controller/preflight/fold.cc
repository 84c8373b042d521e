#include "controller/preflight/fold.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace muster::preflight {
namespace {

constexpr size_t kMostHosts = 8;

bool InHostName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_' ||
         c == ':';
}

// The text with `hosts` where the host stands as a word of its own; as --exclude takes them after
// that flag.
std::string WithHosts(const std::string& text, const std::string& host, const std::string& hosts,
                      const std::string& excluded) {
  constexpr std::string_view kFlag = "--exclude ";
  std::string out;
  size_t at = 0;
  while (true) {
    const size_t found = host.empty() ? std::string::npos : text.find(host, at);
    if (found == std::string::npos) return out + text.substr(at);
    const size_t end = found + host.size();
    // A name may be followed by punctuation: "on node1: ...", "node1, ...".
    const bool colon = end < text.size() && text[end] == ':' &&
                       (end + 1 == text.size() || !InHostName(text[end + 1]));
    const bool whole = (found == 0 || !InHostName(text[found - 1])) &&
                       (end == text.size() || colon || !InHostName(text[end]));
    out += text.substr(at, found - at);
    out += !whole ? host : out.ends_with(kFlag) ? excluded : hosts;
    at = end;
  }
}

// What is the same of hosts that have the same trouble: each its own name and key left out.
std::string Shape(const std::string& text, const std::string& host) {
  constexpr std::string_view kFingerprint = "SHA256:";
  std::string out = WithHosts(text, host, "HOST", "HOST");
  for (size_t at = out.find(kFingerprint); at != std::string::npos;
       at = out.find(kFingerprint, at + kFingerprint.size())) {
    const size_t from = at + kFingerprint.size();
    out.replace(from, std::min(out.find(' ', from), out.size()) - from, "...");
  }
  return out;
}

struct Group {
  const Finding* first = nullptr;
  std::string shape;  // of the value
  std::string value;  // of all hosts
  std::vector<std::string> hosts;
  std::vector<std::string> fixes;  // of each host
};

std::vector<Group> GroupsOf(const std::vector<Finding>& findings) {
  std::vector<Group> groups;
  for (const Finding& finding : findings) {
    const std::string shape = Shape(finding.value, finding.host);
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.first->check == finding.check && group.first->severity == finding.severity &&
             group.shape == shape && group.first->majority == finding.majority &&
             !finding.host.empty() && !group.first->host.empty();
    });
    Group& group = same == groups.end() ? groups.emplace_back() : *same;
    if (group.first == nullptr) {
      group.first = &finding;
      group.shape = shape;
      group.value = finding.value;
    }
    if (group.value != finding.value) group.value = shape;
    group.hosts.push_back(finding.host);
    group.fixes.push_back(finding.fix);
  }
  return groups;
}

std::string HostList(const std::vector<std::string>& hosts) {
  std::string text;
  for (size_t i = 0; i < std::min(hosts.size(), kMostHosts); ++i)
    text += (i == 0 ? "" : ", ") + hosts[i];
  if (hosts.size() > kMostHosts)
    text += " and " + std::to_string(hosts.size() - kMostHosts) + " more";
  return text;
}

std::vector<std::string> FixesOf(const Group& group) {
  const std::string& first = group.hosts.front();
  const std::string& fix = group.fixes.front();
  std::string excluded;
  bool alike = true;
  for (size_t i = 0; i < group.hosts.size(); ++i) {
    const std::string& host = group.hosts[i];
    excluded += (i == 0 ? "" : "@") + host;
    alike = alike && group.fixes[i] == WithHosts(fix, first, host, host);
  }
  if (!alike) return group.fixes;
  if (fix.empty()) return {};
  if (group.hosts.size() == 1) return {fix};
  return {WithHosts(fix, first, HostList(group.hosts), excluded)};
}

}  // namespace

std::vector<Folded> Fold(const std::vector<Finding>& findings) {
  std::vector<Folded> out;
  for (const Group& group : GroupsOf(findings)) {
    const Finding& first = *group.first;
    out.push_back({first.check, first.severity, HostList(group.hosts), group.value, first.majority,
                   FixesOf(group)});
  }
  return out;
}

std::string ToLines(const Folded& folded) {
  const std::string fix = folded.fixes.empty() ? "" : folded.fixes.front();
  std::string lines =
      ToLine({folded.check, folded.severity, folded.hosts, folded.value, folded.majority, fix});
  for (size_t i = 1; i < folded.fixes.size(); ++i) lines += "\n  fix: " + folded.fixes[i];
  return lines;
}

}  // namespace muster::preflight
