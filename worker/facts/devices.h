#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "muster/v1/worker.pb.h"
#include "worker/facts/proc_reader.h"
#include "worker/facts/run_tool.h"

// Accelerators, as the vendors' tools tell them. Programs, not libraries: the daemon is static.
// Parsers are pure.

namespace muster::facts {

struct DeviceList {
  std::vector<v1::Device> devices;
  std::string error;  // the tool's own words when it can't tell
};

// Columns of nvidia-smi's and mthreads-gmi's --query-gpu, in this order.
const std::vector<std::string>& NvidiaFields();
const std::vector<std::string>& MusaFields();

// Answer of `--query-gpu=<fields> --format=csv,noheader,nounits`, one device a line. `[N/A]`,
// `[Not Supported]` and `ERR!` are values that are not known; a line without a device number is
// skipped, a cut one too, and all beyond 256 devices.
std::vector<v1::Device> ParseGpus(const std::string& csv, const std::vector<std::string>& fields,
                                  const std::string& kind);

// Answer of `--query-compute-apps=gpu_uuid,pid,process_name,used_memory`, added to the devices of
// these uuids (MIG instances: to the device that the tool names).
void AddHolders(const std::string& csv, std::vector<v1::Device>& devices);

// The field that the tool does not know: `Field "x" is not a valid field to query.` Else "".
std::string UnknownField(const std::string& text);

// Why the tool failed, in its words, one line: "Driver/library version mismatch" ...; "" when there
// are just no devices.
std::string ToolError(const ToolOutput& output);

// Why the answer of a tool that ends well and has given no device is none, with its first line; ""
// when it says that there are none.
std::string NonsenseError(const ToolOutput& output, const std::vector<v1::Device>& devices);

// mthreads-gmi's table, for versions that have no --query-gpu.
std::vector<v1::Device> ParseMusaTable(const std::string& text);

// Asks nvidia-smi, then mthreads-gmi. Holders get user and command from /proc. Blocks until the
// deadline at most; any thread.
DeviceList FindDevices(const Environment& environment, const ProcReader& proc,
                       std::chrono::steady_clock::time_point deadline);

// Devices for tests and demos: 80 GiB each, nothing used.
std::vector<v1::Device> FakeDevices(uint32_t count);

}  // namespace muster::facts
