#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>

#include "controller/plan/sizes.h"
#include "muster/v1/job.pb.h"

// Names of jobs: part of folder and file names, and what `muster stop NAME` takes.

namespace muster::plan {

// 1-100 letters, digits, '.', '_', '+', '-', the first a letter or digit; not only digits (those
// are job numbers) and not "last".
absl::Status CheckJobName(std::string_view name);

// What the command is called, made fit for a file name: its program's base name, or that of the
// script or module which an interpreter or torchrun is given, without its extension.
std::string CommandName(const v1::JobSpec& spec);

// The job's own name; else for the trainer tp1_pp2_dp8_mbs1_numbs128_gbs1024_gpus16; else
// CommandName.
std::string JobName(const v1::JobSpec& spec, const Sizes& sizes);

}  // namespace muster::plan
