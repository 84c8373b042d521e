#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "common/status.h"
#include "common/suggest.h"
#include "controller/plan/job_name.h"
#include "controller/plan/log_rules.h"
#include "controller/plan/recipe.h"
#include "controller/plan/recipe_reader.h"
#include "controller/plan/toml_value.h"

namespace muster::plan {
namespace {

using Kind = TomlValue::Kind;

bool IsNumber(const TomlValue& value) {
  return value.kind == Kind::kInteger || value.kind == Kind::kFloat;
}

// A name with or without SIG. KILL and STOP can't be caught.
void ReadSaveSignal(const TomlEntry& entry, Recipe& out, Complaints& complaints) {
  const std::vector<std::pair<std::string, int>> known = {
      {"TERM", SIGTERM}, {"INT", SIGINT}, {"HUP", SIGHUP}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}};
  std::vector<std::string> names;
  for (const auto& [name, number] : known) {
    names.push_back(name);
    if (entry.value.kind != Kind::kString) continue;
    if (entry.value.text == name || entry.value.text == "SIG" + name) {
      out.save_signal = static_cast<uint32_t>(number);
      return;
    }
  }
  complaints.Add(entry.value.at,
                 fmt::format("save_signal must be one of {}{}", fmt::join(names, ", "),
                             DidYouMean(entry.value.text, names)));
}

void ReadJob(const TomlEntry& entry, Recipe& out, Complaints& complaints) {
  TableReader job(entry.value, "[job]", complaints);
  out.name = job.String("name");
  out.command = job.Strings("command");
  out.working_dir = job.String("working_dir");
  out.bind_to = job.String("bind_to");
  const TomlEntry* name = job.Find("name");
  const TomlEntry* grace = job.Find("grace");
  const TomlEntry* save = job.Find("save_signal");
  job.Finish();
  if (save != nullptr) ReadSaveSignal(*save, out, complaints);

  if (!out.name.empty()) {
    if (const absl::Status status = CheckJobName(out.name); !status.ok()) {
      complaints.Add(name->value.at, std::string(status.message()));
    }
  }
  if (grace == nullptr) return;
  if (grace->value.kind != Kind::kString && !IsNumber(grace->value)) {
    complaints.Add(grace->value.at, "grace must be seconds, or a text such as \"2m\"");
    return;
  }
  const absl::StatusOr<absl::Duration> parsed = ParseGrace(grace->value.text);
  if (parsed.ok()) {
    out.grace = *parsed;
  } else {
    complaints.Add(grace->value.at, std::string(parsed.status().message()));
  }
}

void ReadParallel(const TomlEntry& entry, Recipe& out, Complaints& complaints) {
  TableReader parallel(entry.value, "[parallel]", complaints);
  out.parallel.set_tp(parallel.Count("tp"));
  out.parallel.set_pp(parallel.Count("pp"));
  out.parallel.set_cp(parallel.Count("cp"));
  out.parallel.set_vp(parallel.Count("vp"));
  out.parallel.set_micro_batch(parallel.Count("micro_batch"));
  out.parallel.set_global_batch(parallel.Count("global_batch"));
  out.parallel.set_num_microbatches(parallel.Count("num_microbatches"));
  const TomlEntry* global = parallel.Find("global_batch");
  const TomlEntry* number = parallel.Find("num_microbatches");
  if (global != nullptr && number != nullptr) {
    complaints.Add(std::max(global->at, number->at),
                   "global_batch and num_microbatches are both given: give exactly one, the other "
                   "follows from it");
  }
  parallel.Finish();
}

// One word of a flag's value; false after a complaint.
bool AddFlagWord(const TomlEntry& entry, const TomlValue& value, v1::Flag& flag,
                 Complaints& complaints) {
  if (value.kind != Kind::kString && !IsNumber(value)) {
    complaints.Add(
        value.at, fmt::format("flag {} must be true, a string, a number or a list of those, not {}",
                              entry.key, KindName(value.kind)));
    return false;
  }
  flag.add_values(value.text);
  return true;
}

void ReadFlag(const TomlEntry& entry, Recipe& out, Complaints& complaints) {
  v1::Flag flag;
  flag.set_name(entry.key);
  if (entry.key.empty() || entry.key[0] == '-') {
    complaints.Add(entry.at, fmt::format("flag '{}': write its name without dashes", entry.key));
    return;
  }
  const TomlValue& value = entry.value;
  if (value.kind == Kind::kBoolean) {
    if (!value.boolean) {
      complaints.Add(value.at,
                     fmt::format("flag {} = false: leave the key out; true gives the bare "
                                 "flag --{}",
                                 entry.key, entry.key));
      return;
    }
  } else if (value.kind == Kind::kArray) {
    if (value.items.empty()) {
      complaints.Add(value.at, fmt::format("flag {} has an empty list", entry.key));
      return;
    }
    for (const TomlValue& item : value.items) {
      if (!AddFlagWord(entry, item, flag, complaints)) return;
    }
  } else if (!AddFlagWord(entry, value, flag, complaints)) {
    return;
  }
  out.flags.push_back(std::move(flag));
}

void ReadEnv(const TomlEntry& entry, Recipe& out, Complaints& complaints) {
  if (entry.value.kind != Kind::kString && !IsNumber(entry.value)) {
    complaints.Add(entry.value.at, fmt::format("{} in [env] must be a string, not {}", entry.key,
                                               KindName(entry.value.kind)));
    return;
  }
  v1::EnvVar& variable = out.env.emplace_back();
  variable.set_name(entry.key);
  variable.set_value(entry.value.text);
}

void ReadSecret(const TomlEntry& entry, Recipe& out, Complaints& complaints) {
  // A literal is not repeated in the message: it may be the secret.
  if (entry.value.kind != Kind::kTable) {
    complaints.Add(entry.value.at,
                   fmt::format("secret {} must say where its value is: {{ file = \"PATH\" }} or "
                               "{{ env = \"NAME\" }}; values do not belong in a recipe",
                               entry.key));
    return;
  }
  TableReader secret(entry.value, fmt::format("secret {}", entry.key), complaints);
  SecretSource source{entry.key, secret.String("file"), secret.String("env")};
  secret.Finish();
  if (source.file.empty() == source.env.empty()) {
    complaints.Add(entry.at, fmt::format("secret {} needs exactly one of file and env", entry.key));
    return;
  }
  out.secrets.push_back(std::move(source));
}

// A table whose keys are the user's own.
template <typename ReadOne>
void ReadEach(const TomlEntry* table, ReadOne read, Recipe& out, Complaints& complaints) {
  if (table == nullptr) return;
  for (const TomlEntry& entry : table->value.entries) read(entry, out, complaints);
}

// A table that is known and has no keys yet.
void ReadEmpty(const TomlEntry* table, Complaints& complaints) {
  if (table != nullptr)
    TableReader(table->value, fmt::format("[{}]", table->key), complaints).Finish();
}

}  // namespace

absl::StatusOr<Recipe> ParseRecipe(std::string_view text, const std::string& source) {
  MUSTER_ASSIGN_OR_RETURN(const TomlValue root, ParseToml(text, source));
  Recipe out;
  out.source = source;
  out.text = std::string(text);
  Complaints complaints(source);
  TableReader top(root, "the recipe", complaints);
  if (const TomlEntry* job = top.FindTable("job")) ReadJob(*job, out, complaints);
  if (const TomlEntry* sizes = top.FindTable("parallel")) ReadParallel(*sizes, out, complaints);
  ReadEach(top.FindTable("flags"), ReadFlag, out, complaints);
  ReadEach(top.FindTable("env"), ReadEnv, out, complaints);
  ReadEach(top.FindTable("secrets"), ReadSecret, out, complaints);
  if (const TomlEntry* checks = top.FindTable("checks")) {
    TableReader reader(checks->value, "[checks]", complaints);
    out.skip_checks = reader.Strings("skip");
    reader.Finish();
  }
  if (const TomlEntry* why = top.FindTable("why")) {
    TableReader reader(why->value, "[why]", complaints);
    out.rule_files = reader.Strings("rules");
    reader.Finish();
  }
  ReadEmpty(top.FindTable("restart"), complaints);
  if (const TomlEntry* logs = top.FindTable("logs")) out.logs = ReadLogs(*logs, complaints);
  top.Finish();
  MUSTER_RETURN_IF_ERROR(complaints.ToStatus());
  return out;
}

}  // namespace muster::plan
