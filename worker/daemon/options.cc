#include "worker/daemon/options.h"

#include <cstdlib>

#include "common/suggest.h"
#include "worker/facts/node_facts.h"
#include "worker/ranks/reconcile.h"

namespace muster::worker {
namespace {

constexpr uint32_t kMaxFakeDevices = 1024;

absl::Status Invalid(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

absl::StatusOr<uint32_t> Number(const std::string& option, const std::string& text, uint32_t most) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || text[0] < '0' || text[0] > '9' || value > most) {
    return Invalid(option + " " + text + ": expected a number from 0 to " + std::to_string(most));
  }
  return static_cast<uint32_t>(value);
}

absl::Status SetValue(Options& options, const std::string& option, const std::string& value) {
  if (value.empty()) return Invalid(option + ": the value is empty");
  if (option == "--name") {
    if (!ranks::IsSafeName(value)) {
      return Invalid("--name " + value + ": 1 to 64 of A-Z a-z 0-9 . _ -, not starting with a dot");
    }
    options.name = value;
  } else if (option == "--listen") {
    if (value != "unix") options.listen.push_back(value);
  } else if (option == "--state-dir") {
    options.state_dir = value;
  } else if (option == "--tls-dir") {
    if (value.front() != '/') return Invalid("--tls-dir " + value + ": expected an absolute path");
    options.tls_dir = value;
  } else {
    const bool idle = option == "--idle-exit";
    auto number = Number(option, value, idle ? 1'000'000'000 : kMaxFakeDevices);
    if (!number.ok()) return number.status();
    (idle ? options.idle_exit_s : options.fake_devices) = *number;
  }
  return absl::OkStatus();
}

}  // namespace

const char kHelp[] =
    "usage: musterd [options]\n"
    "       musterd bridge [--name NAME] [--state-dir DIR] [--idle-exit SECONDS]\n"
    "\n"
    "The worker daemon of Muster: starts, watches and stops the ranks of this node for a "
    "controller.\n"
    "Running ranks survive its end; the next musterd on the same state folder takes them up "
    "again.\n"
    "\n"
    "musterd bridge joins stdin and stdout to this node's daemon, for a controller that comes "
    "over\n"
    "ssh or another program. It starts the daemon when none runs; that one ends after 10 idle\n"
    "minutes (--idle-exit).\n"
    "\n"
    "  --name NAME          this node's name (default: the host name)\n"
    "  --listen unix|IP:PORT  also listen there: on the loopback for this user and root, on other\n"
    "                       addresses by mutual TLS. The Unix socket <state folder>/musterd.sock\n"
    "                       is always there. May be repeated\n"
    "  --tls-dir DIR        folder of this node's key and certificates, which `muster cert push`\n"
    "                       fills (default: <state folder>/tls)\n"
    "  --state-dir DIR      state folder (default: $MUSTER_STATE/NAME, else "
    "/var/tmp/muster-UID/NAME)\n"
    "  --idle-exit SECONDS  end when no controller is connected and no rank lives for so long\n"
    "  --fake-devices N     report N devices that do not exist, for tests and demos\n"
    "  --foreground         stay in the foreground and log to stderr (default)\n"
    "  --background         return once the daemon listens; it logs to <state folder>/musterd.log\n"
    "  --checksum           print the SHA-256 of muster-shim and this program together\n"
    "  --version            print the version (with --json: as JSON)\n"
    "  --help               print this text\n";

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& words) {
  static const std::vector<std::string> kWithValue = {"--name",    "--listen",    "--state-dir",
                                                      "--tls-dir", "--idle-exit", "--fake-devices"};
  static const std::vector<std::string> kBare = {"--foreground", "--background", "--checksum",
                                                 "--version",    "--json",       "--help"};
  static const std::vector<std::string> kNotForBridge = {"--listen", "--tls-dir", "--fake-devices",
                                                         "--background", "--foreground"};
  Options options;
  options.bridge = !words.empty() && words[0] == "bridge";
  for (size_t i = options.bridge ? 1 : 0; i < words.size(); ++i) {
    std::string word = words[i] == "-h" ? "--help" : words[i];
    std::string value;
    const size_t equals = word.find('=');
    const bool has_value = word.starts_with("--") && equals != std::string::npos;
    if (has_value) {
      value = word.substr(equals + 1);
      word = word.substr(0, equals);
    }
    const auto is = [&word](const std::string& known) { return word == known; };
    if (options.bridge && std::any_of(kNotForBridge.begin(), kNotForBridge.end(), is)) {
      return Invalid(word + ": not for musterd bridge, whose daemon runs in the background");
    }
    if (std::any_of(kWithValue.begin(), kWithValue.end(), is)) {
      if (!has_value) {
        if (i + 1 == words.size()) return Invalid(word + ": needs a value");
        value = words[++i];
      }
      const absl::Status status = SetValue(options, word, value);
      if (!status.ok()) return status;
    } else if (std::any_of(kBare.begin(), kBare.end(), is)) {
      if (has_value) return Invalid(word + ": takes no value");
      if (word == "--background") options.background = true;
      if (word == "--foreground") options.background = false;
      if (word == "--checksum") options.checksum = true;
      if (word == "--version") options.version = true;
      if (word == "--json") options.json = true;
      if (word == "--help") options.help = true;
    } else {
      std::vector<std::string> known = kWithValue;
      known.insert(known.end(), kBare.begin(), kBare.end());
      if (i == 0) known.emplace_back("bridge");
      return Invalid("unknown " + std::string(word.starts_with("-") ? "option " : "argument ") +
                     word + DidYouMean(word, known));
    }
  }
  if (options.name.empty()) options.name = facts::HostName();
  return options;
}

}  // namespace muster::worker
