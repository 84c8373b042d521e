#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "controller/nodes/ssh/known_hosts.h"

// Any bytes are a known_hosts file; and a line that we write is found again.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::nodes::ssh;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const PublicKey shown = ParsePublicKey(
      "ssh-ed25519", "AAAAC3NzaC1lZDI1NTE5AAAAIHDmJ0G6lCJVMcqR6WFxXj3kEwdnqOyo7M9l2s4d+FfN");
  for (const char* name : {"node1", "[node1]:2222"}) {
    const auto found = FindKnownKeys(text, "known_hosts", name);
    for (const KnownKey& known : found) {
      if (known.key.type.empty() || known.key.blob.size() < 4 || known.line < 1) std::abort();
    }
    const HostKeyVerdict verdict = JudgeHostKey(found, shown);
    if ((verdict.kind == HostKeyVerdict::Kind::kNew) != (verdict.known == nullptr)) std::abort();
    if (PreferKnownTypes(found).empty()) std::abort();
    for (const KnownKey& known : found) {
      for (const char* salt : {"", "01234567890123456789"}) {
        const std::string line = KnownHostsLine(name, known.key, salt);
        const auto again = FindKnownKeys(line, "new", name);
        if (again.size() != 1 || !(again[0].key == known.key)) std::abort();
      }
    }
  }
  return 0;
}
