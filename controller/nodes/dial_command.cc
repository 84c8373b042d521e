#include "controller/nodes/dial_command.h"

#include <array>
#include <string>
#include <utility>

#include "controller/nodes/child_process.h"

namespace muster::nodes {
namespace {

struct Advice {
  std::string_view says;
  std::string_view fix;
};

// What ssh says when another try will fail too, and what helps.
constexpr std::array kAdvice = {
    Advice{"Permission denied",
           "set up a key or an agent for it (ssh-copy-id); Muster never asks for a password"},
    Advice{"REMOTE HOST IDENTIFICATION HAS CHANGED",
           "if the host was really made anew, forget its old key with ssh-keygen -R HOST"},
    Advice{"Host key verification failed",
           "connect once by hand to accept its key, or add it to known_hosts"},
    Advice{"Bad configuration option", "correct your ssh configuration"},
    // A name server that does not answer is another matter ("Temporary failure"): it may yet.
    Advice{"Name or service not known",
           "correct the name, or give the host an entry in DNS, /etc/hosts or your ssh "
           "configuration"},
    Advice{"No address associated with hostname", "give the name an address in DNS or /etc/hosts"},
    Advice{"unknown option", "correct the options of this transport"},
};

}  // namespace

std::string_view SshAdvice(const std::string& errors) {
  for (const Advice& advice : kAdvice) {
    if (errors.find(advice.says) != std::string::npos) return advice.fix;
  }
  return "";
}

absl::StatusOr<Connection> DialCommand(const std::vector<std::string>& words, ReachOptions options,
                                       const StopSignal& stop) {
  auto started = ChildProcess::Start(words);
  if (!started.ok()) {
    return absl::FailedPreconditionError("start " + std::string(started.status().message()));
  }
  options.advice = SshAdvice;
  return ReachWorker(*std::move(started), options, stop);
}

}  // namespace muster::nodes
