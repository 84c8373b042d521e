#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/hostfile/hostfile.h"
#include "controller/plan/planner.h"
#include "muster/v1/job.pb.h"

// Small builders that the tests of this folder share.

namespace muster::plan {

inline v1::Inventory Hosts(std::string_view hostfile) {
  v1::Inventory inventory = hostfile::ParseHostfile(hostfile).inventory;
  inventory.set_source("hosts");
  return inventory;
}

// A plain command on the hosts of a hostfile text.
inline v1::JobSpec Job(std::string_view hostfile, std::vector<std::string> command) {
  v1::JobSpec spec;
  spec.mutable_command()->Assign(command.begin(), command.end());
  *spec.mutable_inventory() = Hosts(hostfile);
  spec.set_working_dir("/work");
  return spec;
}

inline v1::Parallel Sized(uint32_t tp, uint32_t pp, uint32_t cp, uint32_t micro_batch = 0,
                          uint32_t global_batch = 0, uint32_t num_microbatches = 0,
                          uint32_t vp = 0) {
  v1::Parallel out;
  out.set_tp(tp);
  out.set_pp(pp);
  out.set_cp(cp);
  out.set_vp(vp);
  out.set_micro_batch(micro_batch);
  out.set_global_batch(global_batch);
  out.set_num_microbatches(num_microbatches);
  return out;
}

inline Launch SomeLaunch() {
  return {0, 29555, "run-1", ""};
}

inline std::vector<std::string> Argv(const v1::RankSpec& spec) {
  return {spec.argv().begin(), spec.argv().end()};
}

// The value of a variable of the rank, or "<unset>".
inline std::string Env(const v1::RankSpec& spec, std::string_view name) {
  for (const v1::EnvVar& variable : spec.env()) {
    if (variable.name() == name) return variable.value();
  }
  return "<unset>";
}

inline void AddEnv(v1::JobSpec& spec, const std::string& name, const std::string& value) {
  v1::EnvVar& variable = *spec.add_env();
  variable.set_name(name);
  variable.set_value(value);
}

}  // namespace muster::plan
