#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "controller/hostfile/select.h"
#include "controller/plan/forecast.h"
#include "controller/plan/recipe.h"
#include "controller/plan/render.h"
#include "plan_testing.h"

// What `muster plan` shows, as a whole: tests/golden/plans/NAME.txt for each case below.
// MUSTER_UPDATE_GOLDEN=1 writes them anew.

namespace muster::plan {
namespace {

namespace fs = std::filesystem;

enum class Show { kPlan, kCompare, kRank };

struct Case {
  std::string name;
  std::string recipe;  // of recipes/; "" = `command`
  std::string hostfile;
  Overrides overrides = {};
  std::vector<std::pair<std::string, std::string>> flags = {};  // as by --flag
  std::string include = "";
  std::string exclude = "";
  std::string memory = "";  // --device-memory
  Show show = Show::kPlan;
  uint32_t rank = 0;
};

std::string SlotLines(int hosts, int slots, const std::string& options = "") {
  std::string out;
  for (int i = 1; i <= hosts; ++i) {
    out += "gpu" +
           std::string(i < 10    ? "00"
                       : i < 100 ? "0"
                                 : "") +
           std::to_string(i) + " slots=" + std::to_string(slots) + options + "\n";
  }
  return out;
}

Overrides Layout(std::optional<uint32_t> tp, std::optional<uint32_t> pp = {},
                 std::optional<uint32_t> cp = {}, std::optional<uint32_t> vp = {},
                 std::optional<uint32_t> global_batch = {},
                 std::optional<uint32_t> num_microbatches = {}) {
  Overrides o;
  o.tp = tp;
  o.pp = pp;
  o.cp = cp;
  o.vp = vp;
  o.global_batch = global_batch;
  o.num_microbatches = num_microbatches;
  return o;
}

Overrides Part(std::optional<uint32_t> nnodes, std::optional<uint32_t> nproc_per_node) {
  Overrides o;
  o.nnodes = nnodes;
  o.nproc_per_node = nproc_per_node;
  return o;
}

Overrides Command(std::vector<std::string> words, Overrides o = {}) {
  o.command = std::move(words);
  return o;
}

const std::vector<Case>& Cases() {
  const std::string eight = "llama3_8b_fp8.toml";
  const std::string two = "two_nodes_16_gpus.toml";
  const std::string two_hosts = "10.0.0.1 slots=8\n10.0.0.2 slots=8\n";
  const std::string seventy = "llama3_70b.toml";
  static const std::vector<Case> kCases = {
      // The models, each where it is at home.
      {"8b_on_8_gpus", eight, SlotLines(1, 8, " type=H100")},
      {"8b_on_1_gpu", eight, SlotLines(1, 1, " type=H200")},
      {"8b_on_1_gpu_fp32_moments",
       eight,
       SlotLines(1, 1, " type=H200"),
       {},
       {{"exp-avg-dtype", "fp32"}}},
      {"8b_full_recompute",
       eight,
       SlotLines(1, 8, " type=H100"),
       {},
       {{"recompute-granularity", "full"},
        {"recompute-method", "block"},
        {"recompute-num-layers", "5"}}},
      {"8b_cp2", eight, SlotLines(1, 8), Layout(1, 1, 2)},
      {"70b_on_64_gpus", seventy, SlotLines(8, 8, " type=H100")},
      {"70b_decoder_first_last",
       seventy,
       SlotLines(8, 8),
       Layout(4, 8, 1, 1),
       {{"decoder-first-pipeline-num-layers", "7"}, {"decoder-last-pipeline-num-layers", "7"}}},
      {"405b_on_1024_gpus", "llama3_405b.toml", SlotLines(128, 8, " type=H100")},
      {"two_nodes_16_gpus", two, two_hosts},
      {"two_nodes_pp1", two, two_hosts, Layout(1, 1, 1, {}, 1024)},
      {"torchrun_any", "torchrun_any.toml", "127.0.0.2 slots=2\n127.0.0.3 slots=2\n"},
      {"tiny_cpu", "tiny_cpu.toml", "127.0.0.2 slots=2\n127.0.0.3 slots=2\n"},
      // Machines as they are.
      {"unequal_slots", eight, "gpu001 slots=8\ngpu002 slots=4\n", Layout(1, 1, 1, {}, 120)},
      {"unequal_slots_tp_crosses", seventy, "a slots=6\nb slots=6\nc slots=4\n",
       Layout(4, 4, 1, 5)},
      {"include_devices", eight, two_hosts, {}, {}, "10.0.0.2:6,7,1,0@10.0.0.1:0-3"},
      {"exclude_host_and_device",
       eight,
       SlotLines(3, 4),
       Layout(1, 1, 1, {}, 21),
       {},
       "",
       "gpu002@gpu003:3"},
      {"nnodes_and_nproc", eight, SlotLines(4, 8), Part(2, 4)},
      {"gpus_lists", "torchrun_any.toml",
       "a gpus=7,5 type=H100\nb gpus=0-1 iface=ib0\nc slots=8 spare\n"},
      {"megatron_command", "", SlotLines(2, 8),
       Command({"python",
                "pretrain_gpt.py",
                "--num-layers",
                "30",
                "--hidden-size",
                "4096",
                "--num-attention-heads",
                "32",
                "--seq-length",
                "4096",
                "--vocab-size",
                "50257",
                "--bf16",
                "--use-distributed-optimizer",
                "--tensor-model-parallel-size",
                "{tp}",
                "--pipeline-model-parallel-size",
                "4",
                "--micro-batch-size",
                "{mbs}"},
               [] {
                 Overrides o = Layout(2, 2, 1, {}, 64);
                 o.micro_batch = 2;
                 return o;
               }())},
      // What does not work, and what would.
      {"refused_tp3", two, two_hosts, Layout(3)},
      {"refused_world", "torchrun_any.toml", SlotLines(3, 5), Layout(2, 4)},
      {"refused_global_batch", eight, SlotLines(1, 8), Layout(1, 1, 1, {}, 100)},
      {"refused_virtual_stages", seventy, SlotLines(8, 8), Layout(4, 8, 1, 5, {}, 60)},
      {"refused_layers", eight, SlotLines(1, 6), Layout(1, 3, 1, {}, 128)},
      {"refused_query_groups", "llama3_405b.toml", SlotLines(128, 8), Layout(16)},
      {"refused_sequence", eight, SlotLines(1, 8), Layout(1, 1, 2), {{"seq-length", "8190"}}},
      {"refused_unknown_slots", eight, "gpu001\n"},
      {"does_not_fit", seventy, SlotLines(8, 8), Layout(1, 8, 1, 1), {}, "", "", "80GiB"},
      {"fits_nowhere",
       "llama3_405b.toml",
       SlotLines(1, 8),
       Layout(8, 1, 1, 1),
       {},
       "",
       "",
       "80GiB"},
      // The other views.
      {"compare_16_gpus", two, two_hosts, {}, {}, "", "", "80GiB", Show::kCompare},
      {"rank_of_405b",
       "llama3_405b.toml",
       SlotLines(128, 8),
       {},
       {},
       "",
       "",
       "80GiB",
       Show::kRank,
       900},
  };
  return kCases;
}

std::string AdviceText(const v1::JobSpec& spec, const v1::Plan& plan,
                       const ForecastOptions& options) {
  std::string out;
  for (const auto& advise : {LayoutAdvice, FlagAdvice}) {
    for (const Advice& advice : advise(spec, plan, options)) {
      std::ostringstream bytes;
      bytes.precision(4);
      bytes << advice.bytes / (1 << 30);
      out += "would fit: " + advice.text + "  (" + bytes.str() + " GiB)\n";
    }
  }
  return "\n" + (out.empty() ? "nothing fits\n" : out);
}

std::string Shown(const Case& test, const v1::JobSpec& spec, const v1::Plan& plan) {
  ForecastOptions options;
  if (!test.memory.empty()) options.device_memory = *ParseMemorySize(test.memory);
  const Forecast forecast = MakeForecast(spec, plan, options);
  if (test.show == Show::kCompare) {
    return RenderComparison(plan, forecast, CompareLayouts(spec, plan, options), options.constants,
                            0);
  }
  if (test.show == Show::kRank) {
    return RenderRank(plan, spec, *MakeRankSpec(spec, plan, test.rank, SomeLaunch()), forecast);
  }
  std::string out =
      RenderText(plan, RankRows::kFolded) + RenderForecast(plan, forecast, options.constants);
  if (forecast.TooLarge()) out += AdviceText(spec, plan, options);
  return out;
}

std::string Output(const Case& test, const fs::path& source) {
  Surroundings surroundings = Surroundings::Real("");
  surroundings.working_dir = "/data/run";
  auto spec = test.recipe.empty()
                  ? BuildJobSpec(nullptr, test.overrides, surroundings)
                  : LoadRecipe(source / "recipes" / test.recipe, test.overrides, surroundings);
  if (!spec.ok()) return "error: " + spec.status().ToString() + "\n";
  *spec->mutable_inventory() = Hosts(test.hostfile);
  if (!test.include.empty()) {
    EXPECT_TRUE(hostfile::Include(test.include, spec->mutable_inventory()).ok());
  }
  if (!test.exclude.empty()) {
    EXPECT_TRUE(hostfile::Exclude(test.exclude, spec->mutable_inventory()).ok());
  }
  for (const auto& [name, value] : test.flags) {
    auto& flags = *spec->mutable_flags();
    flags.erase(
        std::remove_if(flags.begin(), flags.end(),
                       [&, wanted = name](const v1::Flag& f) { return f.name() == wanted; }),
        flags.end());
    v1::Flag& flag = *flags.Add();
    flag.set_name(name);
    if (!value.empty()) flag.add_values(value);
  }
  const auto plan = MakePlan(*spec);
  if (!plan.ok()) return "error: " + std::string(plan.status().message()) + "\n";
  return Shown(test, *spec, *plan);
}

TEST(GoldenPlans, AreShownAsBefore) {
  const char* source_variable = std::getenv("MUSTER_SOURCE");
  const fs::path source = source_variable == nullptr ? "." : source_variable;
  const fs::path folder = source / "tests/golden/plans";
  const bool update = std::getenv("MUSTER_UPDATE_GOLDEN") != nullptr;
  EXPECT_GE(Cases().size(), 20U);
  size_t files = 0;
  for (const Case& test : Cases()) {
    SCOPED_TRACE(test.name);
    const fs::path path = folder / (test.name + ".txt");
    const std::string got = Output(test, source);
    if (update) std::ofstream(path, std::ios::binary) << got;
    std::ostringstream want;
    want << std::ifstream(path, std::ios::binary).rdbuf();
    EXPECT_EQ(got, want.str()) << "MUSTER_UPDATE_GOLDEN=1 writes " << path;
    ++files;
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") --files;
  }
  EXPECT_EQ(files, 0U) << "a file without a case in " << folder;
}

}  // namespace
}  // namespace muster::plan
