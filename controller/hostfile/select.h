#pragma once

#include <absl/status/status.h>

#include <string_view>

#include "muster/v1/job.pb.h"

// Parts of an inventory, in the form of DeepSpeed's --include and --exclude. Pure.
//
//   node01                 all of a host              node01@node02   several hosts
//   node01:0,2             devices 0 and 2 of it      node[01-04]:0-3 the same of four hosts
//   [fd00::1]:0            an IPv6 address with devices
//   root@node01            the host whose line says user root: the hostfile decides whether the
//                          word before an '@' is a host or a user; if it is both, that is an error
//
// Numbers are devices: those of gpus=, else 0..slots-1.

namespace muster::hostfile {

// Keeps only what `text` names, in the hostfile's order; devices in the order of `text`. Spares
// stay. InvalidArgument says which word is wrong and why; `inventory` is then unchanged.
absl::Status Include(std::string_view text, v1::Inventory* inventory);

// Drops what `text` names; a host without devices left goes altogether. At least one host that is
// no spare must remain.
absl::Status Exclude(std::string_view text, v1::Inventory* inventory);

}  // namespace muster::hostfile
