#pragma once

#include <absl/status/status.h>

#include "controller/store/sqlite.h"

namespace muster::store {

// Brings a database to the newest schema, one migration after the other, each in its own
// transaction (`user_version` counts them). FailedPrecondition for a database of a newer Muster.
absl::Status Migrate(Database& db);

// The schema that this program writes.
int LatestSchema();

}  // namespace muster::store
