#pragma once

#include <string>
#include <vector>

// What runs on the other side of ssh and its like: /bin/sh reads the bootstrap script
// (bootstrap_script.h) on its stdin and becomes what that says. Pure.

namespace muster::nodes {

// argv, for programs that pass it on as it is (docker exec, ip netns exec, srun).
std::vector<std::string> RemoteWords();

// The same for programs that hand one string to the user's login shell (ssh, su -c): quoted so that
// sh, bash, zsh, csh, tcsh and fish read it alike.
std::string RemoteLine();

// A script as those words take it: the number of its lines first.
std::string ForRemote(const std::string& script);

}  // namespace muster::nodes
