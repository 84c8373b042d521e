#pragma once

#include <string>

namespace muster::certs {

// Where this user's controller keeps its authority and its own certificate: `$MUSTER_STATE/tls` if
// that is set, else `$XDG_CONFIG_HOME/muster/tls`, else `~/.config/muster/tls`: to be kept, unlike
// the state in /var/tmp. Makes nothing.
std::string DefaultFolder();

}  // namespace muster::certs
