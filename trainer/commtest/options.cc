#include "trainer/commtest/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>

#include "common/suggest.h"
#include "trainer/config/error.h"

namespace muster::commtest {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 40;

std::optional<int64_t> Number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

int64_t Count(const std::string& flag, const std::string& text, int64_t least, int64_t most) {
  const auto value = Number(text);
  if (!value || *value < least || *value > most) {
    throw ConfigError(
        fmt::format("{} {}: expected a whole number from {} to {}", flag, text, least, most));
  }
  return *value;
}

template <class Value>
Value Choose(const std::string& flag, const std::string& text,
             const std::vector<std::pair<std::string, Value>>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) {
    if (name == text) return value;
    names.push_back(name);
  }
  throw ConfigError(fmt::format("{} {}: not one of {}{}", flag, text, fmt::join(names, ", "),
                                DidYouMean(text, names)));
}

std::vector<Collective> ParseCollectives(const std::string& flag, const std::string& text) {
  std::vector<std::pair<std::string, Collective>> choices;
  for (const Collective c : AllCollectives()) choices.emplace_back(Name(c), c);
  std::vector<Collective> out;
  if (text == "none") return out;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    out.push_back(Choose(flag, text.substr(begin, end - begin), choices));
    begin = end + 1;
  }
  return out;
}

using Setter = std::function<void(Options&, const std::string& flag, const std::string& value)>;

const std::map<std::string, Setter>& Setters() {
  static const auto& setters = *new std::map<std::string, Setter>{
      {"--backend",
       [](Options& o, const std::string& f, const std::string& v) {
         o.backend = Choose<Backend>(
             f, v, {{"auto", Backend::kAuto}, {"gloo", Backend::kGloo}, {"nccl", Backend::kNccl}});
       }},
      {"--ops", [](Options& o, const std::string& f,
                   const std::string& v) { o.collectives = ParseCollectives(f, v); }},
      {"--datatype",
       [](Options& o, const std::string& f, const std::string& v) {
         std::vector<std::pair<std::string, Type>> choices;
         for (const Type type : AllTypes()) choices.emplace_back(Name(type), type);
         o.type = Choose(f, v, choices);
       }},
      {"--min-bytes", [](Options& o, const std::string& f,
                         const std::string& v) { o.min_bytes = ParseSize(f, v); }},
      {"--max-bytes", [](Options& o, const std::string& f,
                         const std::string& v) { o.max_bytes = ParseSize(f, v); }},
      {"--step-factor", [](Options& o, const std::string& f,
                           const std::string& v) { o.step_factor = Count(f, v, 2, 1 << 20); }},
      {"--iters", [](Options& o, const std::string& f,
                     const std::string& v) { o.iterations = Count(f, v, 1, 1'000'000); }},
      {"--warmup-iters", [](Options& o, const std::string& f,
                            const std::string& v) { o.warmup = Count(f, v, 0, 1'000'000); }},
      {"--pairs",
       [](Options& o, const std::string& f, const std::string& v) {
         o.pairs = Choose<bool>(f, v, {{"all", true}, {"none", false}});
       }},
      {"--pair-bytes", [](Options& o, const std::string& f,
                          const std::string& v) { o.pair_bytes = ParseSize(f, v); }},
      {"--pair-iters", [](Options& o, const std::string& f,
                          const std::string& v) { o.pair_iterations = Count(f, v, 1, 100'000); }},
      {"--timeout",
       [](Options& o, const std::string& f, const std::string& v) {
         o.timeout = std::chrono::seconds(Count(f, v, 1, 86'400));
       }},
  };
  return setters;
}

// nccl-tests' letters.
const std::map<std::string, std::string>& Letters() {
  static const auto& letters = *new std::map<std::string, std::string>{
      {"-b", "--min-bytes"},    {"-e", "--max-bytes"}, {"-f", "--step-factor"}, {"-n", "--iters"},
      {"-w", "--warmup-iters"}, {"-d", "--datatype"},  {"-T", "--timeout"},     {"-h", "--help"}};
  return letters;
}

void Validate(const Options& options) {
  if (options.min_bytes > options.max_bytes) {
    throw ConfigError(fmt::format("--min-bytes {} is more than --max-bytes {}", options.min_bytes,
                                  options.max_bytes));
  }
}

}  // namespace

const char kHelp[] =
    R"(usage: muster submit --hostfile hosts -- muster-commtest [options]
       torchrun --nproc-per-node 8 --no-python muster-commtest [options]

Measures and checks the communication between the ranks of a job: collectives over all ranks by size, then latency and
bandwidth of every pair of hosts. Every received element is compared with what it must be. Rank 0 prints a table with
nccl-tests' columns and names odd pairs and hosts.

  --backend auto|gloo|nccl  NCCL between GPUs, Gloo between CPUs (auto: NCCL where there is a GPU)
  --ops LIST                of all_reduce,all_gather,reduce_scatter,broadcast,sendrecv, or none (default: all)
  -d, --datatype TYPE       float, double, int32 or int64
  -b, --min-bytes SIZE      smallest message, as 8 or 64K (default 8)
  -e, --max-bytes SIZE      largest message (default 16M)
  -f, --step-factor N       each size is N times the one before (default 8)
  -n, --iters N             measured and checked calls of each size; the median counts (default 5)
  -w, --warmup-iters N      calls before them (default 1)
  --pairs all|none          pairs of hosts; with one host: pairs of ranks (default all)
  --pair-bytes SIZE         message for the bandwidth of a pair (default 4M)
  --pair-iters N            round trips of each pair; the median counts (default 20)
  -T, --timeout SECONDS     for the start and for each call (default 60)
  --json                    one JSON object on stdout instead of the tables
  --version, --help

Exit codes: 0 all data right (odd pairs are named, but no error); 64 options or environment; 65 wrong data; 70 CUDA;
71 a rank is gone, late or not to be reached.
)";

int64_t ParseSize(const std::string& flag, const std::string& text) {
  static const std::string kUnits = "KMG";
  std::string digits = text;
  int64_t unit = 1;
  if (!digits.empty()) {
    const size_t index = kUnits.find(digits.back());
    if (index != std::string::npos) {
      unit = int64_t{1} << (10 * (index + 1));
      digits.pop_back();
    }
  }
  const auto value = Number(digits);
  if (!value || *value < 1 || *value > kMostBytes / unit) {
    throw ConfigError(fmt::format("{} {}: expected a size such as 8, 64K, 128M or 1G, up to {} GiB",
                                  flag, text, kMostBytes >> 30));
  }
  return *value * unit;
}

Options ParseOptions(const std::vector<std::string>& words) {
  Options options;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string flag = words[i];
    std::optional<std::string> value;
    const size_t equals = flag.find('=');
    if (flag.starts_with("--") && equals != std::string::npos) {
      value = flag.substr(equals + 1);
      flag = flag.substr(0, equals);
    }
    if (const auto letter = Letters().find(flag); letter != Letters().end()) flag = letter->second;
    bool* const bare = flag == "--json"      ? &options.json
                       : flag == "--help"    ? &options.help
                       : flag == "--version" ? &options.version
                                             : nullptr;
    if (bare != nullptr && !value) {
      *bare = true;
      continue;
    }
    const auto setter = Setters().find(flag);
    if (setter == Setters().end()) {
      std::vector<std::string> known = {"--json", "--help", "--version"};
      for (const auto& [name, unused] : Setters()) known.push_back(name);
      if (bare != nullptr) throw ConfigError(flag + ": takes no value");
      throw ConfigError("unknown option " + words[i] + DidYouMean(flag, known));
    }
    if (!value && i + 1 == words.size()) throw ConfigError(flag + ": needs a value");
    if (!value) value = words[++i];
    setter->second(options, flag, *value);
  }
  Validate(options);
  return options;
}

std::vector<int64_t> Sizes(const Options& options) {
  std::vector<int64_t> sizes;
  int64_t size = options.min_bytes;
  while (true) {
    sizes.push_back(size);
    if (size > options.max_bytes / options.step_factor) return sizes;
    size *= options.step_factor;
  }
}

}  // namespace muster::commtest
