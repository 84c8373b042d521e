#include "worker/shim/rank_spec.h"

#include "worker/shim/frame.h"

namespace muster::shim {
namespace {

constexpr std::string_view kMagic = "MUSTSPEC";
constexpr uint32_t kVersion = 3;

bool HasNul(const std::string& text) {
  return text.find('\0') != std::string::npos;
}

}  // namespace

std::string EncodeRankSpec(const RankSpec& spec) {
  FieldWriter out;
  out.U32(static_cast<uint32_t>(spec.argv.size()));
  for (const std::string& word : spec.argv) out.Bytes(word);
  out.U32(static_cast<uint32_t>(spec.env.size()));
  for (const auto& [name, value] : spec.env) {
    out.Bytes(name);
    out.Bytes(value);
  }
  out.Bytes(spec.working_dir);
  out.Bytes(spec.cgroup_procs);
  out.U32(static_cast<uint32_t>(spec.cpus.size()));
  for (const uint32_t cpu : spec.cpus) out.U32(cpu);
  out.U64(spec.quota.bytes);
  out.U8(spec.quota.drop_oldest);
  return EncodeFrame(kMagic, kVersion, out.Take());
}

std::optional<RankSpec> DecodeRankSpec(std::string_view file, std::string& error) {
  const auto payload = DecodeFrame(kMagic, kVersion, file, error);
  if (!payload) return std::nullopt;
  FieldReader in(*payload);
  RankSpec spec;
  const uint32_t argc = in.U32();
  for (uint32_t i = 0; i < argc && in.ok(); ++i) spec.argv.push_back(in.Bytes());
  const uint32_t variables = in.U32();
  for (uint32_t i = 0; i < variables && in.ok(); ++i) {
    std::string name = in.Bytes();
    spec.env.emplace_back(std::move(name), in.Bytes());
  }
  spec.working_dir = in.Bytes();
  spec.cgroup_procs = in.Bytes();
  const uint32_t cpus = in.U32();
  for (uint32_t i = 0; i < cpus && in.ok(); ++i) spec.cpus.push_back(in.U32());
  spec.quota.bytes = in.U64();
  spec.quota.drop_oldest = in.U8() != 0;
  if (!in.Done()) {
    error = "fields do not fit the length";
    return std::nullopt;
  }
  if (spec.argv.empty()) {
    error = "no command";
    return std::nullopt;
  }
  for (const std::string& word : spec.argv) {
    if (HasNul(word)) {
      error = "a NUL byte inside an argument";
      return std::nullopt;
    }
  }
  for (const auto& [name, value] : spec.env) {
    if (name.empty() || name.find('=') != std::string::npos || HasNul(name) || HasNul(value)) {
      error = "environment variable '" + name + "' is not NAME=VALUE";
      return std::nullopt;
    }
  }
  return spec;
}

}  // namespace muster::shim
