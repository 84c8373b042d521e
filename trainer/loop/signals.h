#pragma once

namespace muster::loop {

// --exit-signal-handler: from now on SIGTERM sets a flag instead of ending the process. Once,
// before training.
void CatchTermination();
// SIGTERM has come. Any thread.
bool TerminationRequested();

}  // namespace muster::loop
