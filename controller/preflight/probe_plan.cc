#include "controller/preflight/probe_plan.h"

#include <utility>

namespace muster::preflight {

v1::Probe MakeProbe(const v1::JobSpec& spec, const v1::Plan& plan, uint32_t node) {
  v1::Probe probe;
  if (plan.argv_size() > 0) {
    probe.set_working_dir(spec.working_dir());
    const std::string& program = plan.argv(0);
    if (program.find('{') == std::string::npos) {
      probe.set_program(program);
      probe.set_python(IsPython(program));
    }
    CommandFiles files = FilesOf(spec, plan);
    for (auto& path : files.required) probe.add_readable(std::move(path));
    for (auto& path : files.optional) probe.add_optional_files(std::move(path));
    for (auto& path : files.written) probe.add_writable(std::move(path));
  }
  *probe.mutable_env() = plan.env();
  if (node == 0) {
    probe.set_want_port(true);
    probe.set_port_address(plan.nodes(0).data_addr());
    probe.set_first_port(spec.port_range().first());
    probe.set_last_port(spec.port_range().last());
  }
  return probe;
}

}  // namespace muster::preflight
