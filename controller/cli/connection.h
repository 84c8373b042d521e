#pragma once

#include <string>

#include "controller/cli/client.h"

// How commands get to the controller of this user.

namespace muster::cli {

// Absolute path of this user's controller state; `chosen` (--state-dir) wins when it is not empty.
std::string StateDir(const std::string& chosen = "");

// To the controller that runs for `state_dir`; never starts one.
Client::Connector ConnectToRunning(const std::string& state_dir);

// To the controller of `state_dir`; starts one in the background when none runs.
Client::Connector ConnectOrStart(const std::string& state_dir);

// The same, but starts one only where one has been before: nothing is begun just to say that there
// is nothing. NotFound: there has never been a controller.
Client::Connector ConnectIfUsed(const std::string& state_dir);

}  // namespace muster::cli
