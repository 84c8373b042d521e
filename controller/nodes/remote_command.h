#pragma once

#include <string>
#include <vector>

// What runs on the other side of ssh and its like: /bin/sh finds musterd and becomes its bridge.
// Pure.

namespace muster::nodes {

struct RemoteCommand {
  std::string musterd;  // path that is tried first; then PATH
  std::string name;     // the node's name
};

// argv, for programs that pass it on as it is (docker exec, ip netns exec, srun).
std::vector<std::string> RemoteWords(const RemoteCommand& command);

// The same for programs that hand one string to the user's login shell (ssh, su -c): quoted so that
// sh, bash, zsh, csh, tcsh and fish read it alike. A path that no quoting saves from all of them
// (with ! or \ or a line break) is left out, so that only PATH is searched.
std::string RemoteLine(const RemoteCommand& command);

// How the script says that there is no musterd, with exit status 127.
inline constexpr char kNoMusterd[] = "musterd is neither ";

}  // namespace muster::nodes
