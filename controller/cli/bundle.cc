// muster bundle: the trainer's programs with their libraries, as a tree that can be moved.
#include "controller/bundle/bundle.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <system_error>

#include "controller/cli/command.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"
#include "controller/cli/render.h"

namespace muster::cli {
namespace {

struct BundleFlags {
  std::string output = "muster-bundle";
  bool cpu = false;
  bool json = false;
};

constexpr char kFooter[] =
    R"(Collects muster-train, muster-preprocess and muster-commtest, which lie beside muster, with every
library that they load here: LibTorch, the parts of CUDA, cuDNN and NCCL that are used, and others.
The tree can lie anywhere: its programs are started from a moved copy, with an empty environment,
before the command succeeds. Hosts need a C library as new as this machine's, and for GPUs their
driver (docs/staging.md).

Examples:
  muster bundle
  muster bundle --output /tmp/trainer.tar.zst
  muster stage muster-bundle --hostfile hosts
  muster submit --stage muster-bundle recipes/llama3_8b_fp8.toml --hostfile hosts

Exit codes: 0 ok; 2 usage, or something is missing here; 125 internal.
)";

double MiB(uint64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

int Run(const BundleFlags& flags) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto output = std::filesystem::absolute(flags.output, error).lexically_normal();
  auto parts = bundle::MakeBundle({self.parent_path(), output, flags.cpu});
  if (absl::IsFailedPrecondition(parts.status()) || absl::IsAlreadyExists(parts.status()))
    parts = absl::InvalidArgumentError(parts.status().message());
  if (!parts.ok()) return Fail(parts.status(), flags.json);
  uint64_t all = 0;
  Table table({"part", "files", "MiB"});
  table.AlignRight({1, 2});
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const bundle::Part& part : *parts) {
    all += part.bytes;
    table.Add({part.name, fmt::format("{}", part.files), fmt::format("{:.1f}", MiB(part.bytes))});
    list.push_back({{"name", part.name}, {"files", part.files}, {"bytes", part.bytes}});
  }
  if (flags.json) {
    const nlohmann::ordered_json out = {
        {"output", output.string()}, {"bytes", all}, {"parts", list}};
    PrintLine(out.dump());
    return kExitOk;
  }
  WriteAll(1, table.Render(Style::For(1)));
  PrintLine(fmt::format("{:.1f} MiB in {}", MiB(all), output.string()));
  return kExitOk;
}

}  // namespace

Command AddBundle(CLI::App& root) {
  const auto flags = std::make_shared<BundleFlags>();
  CLI::App* app =
      root.add_subcommand("bundle", "The trainer with its libraries, as a tree that can be moved");
  app->add_option("--output", flags->output,
                  "A new folder, or a file that ends in .tar.zst (default: muster-bundle)")
      ->type_name("PATH");
  app->add_flag("--cpu", flags->cpu, "Leave out what is loaded only when a GPU is used");
  JsonFlag(app, &flags->json);
  app->footer(kFooter);
  return {app, [flags](const Invocation&) { return Run(*flags); }};
}

}  // namespace muster::cli
