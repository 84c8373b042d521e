#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/preflight/checks.h"

// The single checks behind Check(). Each looks at all nodes that have answered and adds what it
// finds. Pure.

namespace muster::preflight {

using Nodes = std::vector<NodeFacts>;
using Findings = std::vector<Finding>;

// check_connect.cc: hosts without an answer, and two names for one machine
void CheckConnect(const Nodes& nodes, const Options& options, Findings& out);
void CheckMachine(const Nodes& nodes, const Options& options, Findings& out);
// check_system.cc
void CheckVersion(const Nodes& nodes, const Options& options, Findings& out);
void CheckCertificate(const Nodes& nodes, const Options& options, Findings& out);
void CheckClock(const Nodes& nodes, const Options& options, Findings& out);
void CheckDisk(const Nodes& nodes, const Options& options, Findings& out);
void CheckShm(const Nodes& nodes, const Options& options, Findings& out);
void CheckLimits(const Nodes& nodes, const Options& options, Findings& out);
void CheckRdma(const Nodes& nodes, const Options& options, Findings& out);
// check_devices.cc
void CheckDevices(const Nodes& nodes, const Options& options, Findings& out);
void CheckDeviceMemory(const Nodes& nodes, const Options& options, Findings& out);
void CheckDeviceHealth(const Nodes& nodes, const Options& options, Findings& out);
void CheckDriver(const Nodes& nodes, const Options& options, Findings& out);
// check_program.cc
void CheckWorkingDir(const Nodes& nodes, const Options& options, Findings& out);
void CheckProgram(const Nodes& nodes, const Options& options, Findings& out);
void CheckPython(const Nodes& nodes, const Options& options, Findings& out);
void CheckFiles(const Nodes& nodes, const Options& options, Findings& out);
// check_stage.cc
void CheckStage(const Nodes& nodes, const Options& options, Findings& out);
// check_network.cc
void CheckInterface(const Nodes& nodes, const Options& options, Findings& out);
void CheckNetwork(const Nodes& nodes, const Options& options, Findings& out);
void CheckPort(const Nodes& nodes, const Options& options, Findings& out);

// Nodes that are the machine of an earlier one -> that one. Several workers on loopback addresses
// do not count.
std::map<size_t, size_t> SecondNames(const Nodes& nodes);

// The value that most nodes have, or "" when no value has more than half of them. Empty ones do not
// count.
std::string Majority(const std::vector<std::string>& values);

// Adds a finding for every node whose value differs from the others': against the majority, or,
// where there is none, against the first that has one. Empty values are left out.
template <typename Value>
void CompareAll(const Nodes& nodes, const std::string& check, Severity severity,
                const std::string& fix, Value value, Findings& out) {
  std::vector<std::string> values;
  values.reserve(nodes.size());
  for (const auto& node : nodes) values.push_back(node.absent.empty() ? value(node) : "");
  std::string majority = Majority(values);
  for (size_t i = 0; majority.empty() && i < values.size(); ++i) majority = values[i];
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (values[i].empty() || values[i] == majority) continue;
    out.push_back({check, severity, nodes[i].host, values[i], majority, fix});
  }
}

// "3 MiB", "1.5 GiB".
std::string Bytes(uint64_t bytes);

}  // namespace muster::preflight
