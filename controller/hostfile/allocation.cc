#include "controller/hostfile/allocation.h"

#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "controller/hostfile/host_set.h"
#include "controller/hostfile/host_word.h"
#include "controller/hostfile/options.h"
#include "controller/hostfile/text.h"

namespace muster::hostfile {
namespace {

// A host and how many ranks it takes; 0 = not said.
using Slots = std::pair<std::string, uint32_t>;

absl::Status Wrong(const std::string& text) {
  return absl::InvalidArgumentError(text);
}

std::vector<std::string> Words(const std::string& text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
}

// A word for each slot; the first time a host is named gives its place.
std::vector<Slots> CountWords(const std::vector<std::string>& words) {
  std::vector<Slots> out;
  std::map<std::string, size_t> places;
  for (const std::string& word : words) {
    const auto [it, is_new] = places.emplace(HostKey(word), out.size());
    if (is_new) out.emplace_back(word, 0U);
    ++out[it->second].second;
  }
  return out;
}

// "8(x2),4" -> 8, 8, 4.
absl::StatusOr<std::vector<uint32_t>> ParseTasks(const std::string& text) {
  std::vector<uint32_t> out;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    std::string_view number(item.data(), item.size());
    std::optional<uint32_t> times = 1;
    if (const size_t open = number.find("(x"); open != std::string_view::npos) {
      const std::string_view rest = number.substr(open + 2);
      times = rest.ends_with(')') ? ParseDecimal(rest.substr(0, rest.size() - 1)) : std::nullopt;
      number = number.substr(0, open);
    }
    const std::optional<uint32_t> tasks = ParseDecimal(number);
    if (!tasks || !times || *tasks == 0 || *times == 0 || *times > kMaxHosts - out.size()) {
      return Wrong(fmt::format("SLURM_TASKS_PER_NODE={}: not of the form 8(x2),4", text));
    }
    out.insert(out.end(), *times, *tasks);
  }
  return out;
}

// "8", or "h100:8" as in SLURM_GPUS_PER_NODE; not "h100:4,a100:2", where ranks have no one place.
absl::StatusOr<uint32_t> ParseGpus(std::string_view name, const std::string& text) {
  const std::string_view number = std::string_view(text).substr(text.rfind(':') + 1);
  const std::optional<uint32_t> gpus = ParseDecimal(number);
  if (text.find(',') == std::string::npos && gpus && *gpus <= kMaxSlots) return *gpus;
  return Wrong(fmt::format("{}={}: not a number of devices", name, text));
}

// From the commas outside brackets.
std::vector<std::string> SplitHostlist(const std::string& text) {
  std::vector<std::string> out(1);
  bool inside = false;
  for (const char c : text) {
    if (c == '[' || c == ']') inside = c == '[';
    if (c == ',' && !inside) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

absl::StatusOr<std::vector<std::string>> ExpandNodelist(const std::string& text) {
  std::vector<std::string> hosts;
  for (const std::string& item : SplitHostlist(text)) {
    const absl::StatusOr<HostWord> word = ParseHostWord(item, kMaxHosts - hosts.size());
    if (!word.ok() || word->suffix || word->user) {
      return Wrong(fmt::format(
          "SLURM_JOB_NODELIST={}: {}", text,
          word.ok() ? "not a list of host names" : std::string(word.status().message())));
    }
    hosts.insert(hosts.end(), word->hosts.begin(), word->hosts.end());
  }
  return hosts;
}

absl::StatusOr<std::vector<Slots>> FromSlurm(const std::string& nodelist,
                                             const AllocationSources& sources) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> hosts, ExpandNodelist(nodelist));
  std::vector<uint32_t> tasks;
  if (const auto text = sources.get_env("SLURM_TASKS_PER_NODE")) {
    MUSTER_ASSIGN_OR_RETURN(tasks, ParseTasks(*text));
    if (tasks.size() != hosts.size()) {
      return Wrong(
          fmt::format("SLURM_TASKS_PER_NODE={} speaks of {} hosts, SLURM_JOB_NODELIST={} "
                      "of {}: are they of one job?",
                      *text, tasks.size(), nodelist, hosts.size()));
    }
  }
  uint32_t gpus = 0;
  for (const char* name : {"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"}) {
    const auto text = sources.get_env(name);
    if (!text || text->empty()) continue;
    MUSTER_ASSIGN_OR_RETURN(gpus, ParseGpus(name, *text));
    break;
  }
  const bool one_task = std::all_of(tasks.begin(), tasks.end(), [](uint32_t n) { return n == 1; });
  std::vector<Slots> out;
  for (size_t i = 0; i < hosts.size(); ++i) {
    out.emplace_back(hosts[i], gpus > 0 && one_task ? gpus : tasks.empty() ? 0 : tasks[i]);
  }
  return out;
}

absl::StatusOr<std::vector<Slots>> FromFile(const std::string& path,
                                            const AllocationSources& sources) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, sources.read_file(path));
  return CountWords(Words(text));
}

absl::StatusOr<std::vector<Slots>> FromWords(const std::string& text, const AllocationSources&) {
  return CountWords(Words(text));
}

absl::StatusOr<std::vector<Slots>> FromPairs(const std::string& text, const AllocationSources&) {
  const std::vector<std::string> words = Words(text);
  std::vector<Slots> out;
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    const std::optional<uint32_t> slots = ParseDecimal(words[i + 1]);
    if (!slots || *slots == 0) break;
    out.emplace_back(words[i], *slots);
  }
  if (out.size() * 2 != words.size()) {
    return Wrong(fmt::format("LSB_MCPU_HOSTS={}: not of the form HOST SLOTS HOST SLOTS", text));
  }
  return out;
}

struct Scheduler {
  std::string_view name;
  const char* variable;
  absl::StatusOr<std::vector<Slots>> (*read)(const std::string& value, const AllocationSources&);
};

// Of several variables of one scheduler the first counts.
constexpr std::array kSchedulers = {
    Scheduler{"Slurm", "SLURM_JOB_NODELIST", FromSlurm},
    Scheduler{"PBS", "PBS_NODEFILE", FromFile},
    Scheduler{"LSF", "LSB_DJOB_HOSTFILE", FromFile},
    Scheduler{"LSF", "LSB_MCPU_HOSTS", FromPairs},
    Scheduler{"LSF", "LSB_HOSTS", FromWords},
};

absl::StatusOr<v1::Inventory> MakeInventory(const std::vector<Slots>& hosts, const char* variable) {
  HostSet set("host");
  uint32_t number = 0;
  std::vector<Error> errors;
  for (const auto& [host, slots] : hosts) {
    ++number;
    const absl::StatusOr<HostWord> word = ParseHostWord(host, set.Room());
    v1::Host options;
    if (slots > kMaxSlots) {
      errors.push_back(
          {number, fmt::format("{} has {} slots, more than {}", host, slots, kMaxSlots)});
    } else if (!word.ok() || word->suffix || word->hosts.size() > 1) {
      errors.push_back({number, word.ok() ? fmt::format("{} is not a host name", Quoted(host))
                                          : std::string(word.status().message())});
    } else {
      if (slots > 0) options.set_slots(slots);
      if (auto error = set.Add(number, *word, options)) errors.push_back(*std::move(error));
    }
  }
  if (errors.empty()) errors = set.CheckWhole();
  if (!errors.empty()) {
    errors.resize(std::min<size_t>(errors.size(), 20));
    return Wrong(FormatErrors(variable, errors));
  }
  v1::Inventory out = std::move(set).Take();
  out.set_source(variable);
  return out;
}

}  // namespace

absl::StatusOr<v1::Inventory> ReadAllocation(const AllocationSources& sources) {
  const Scheduler* found = nullptr;
  std::string value;
  for (const Scheduler& scheduler : kSchedulers) {
    const auto text = sources.get_env(scheduler.variable);
    if (!text || text->empty() || (found != nullptr && found->name == scheduler.name)) continue;
    if (found != nullptr) {
      return Wrong(
          fmt::format("both {} ({}) and {} ({}) seem to have given hosts: unset the variable "
                      "that is left over, or name a hostfile",
                      found->name, found->variable, scheduler.name, scheduler.variable));
    }
    found = &scheduler;
    value = *text;
  }
  if (found == nullptr) {
    return Wrong(
        "not inside an allocation: none of SLURM_JOB_NODELIST, PBS_NODEFILE, "
        "LSB_DJOB_HOSTFILE, LSB_MCPU_HOSTS and LSB_HOSTS is set; give --hostfile FILE or --host "
        "LIST");
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Slots> hosts, found->read(value, sources));
  return MakeInventory(hosts, found->variable);
}

}  // namespace muster::hostfile
