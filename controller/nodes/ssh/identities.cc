#include "controller/nodes/ssh/identities.h"

#include <absl/strings/escaping.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "common/status.h"
#include "controller/nodes/ssh/known_hosts.h"

namespace muster::nodes::ssh {
namespace {

// An agent answers at once or waits for a person.
constexpr std::chrono::seconds kAgentLimit{5};

struct FileKey {
  std::string path;
  std::string blob;     // "": the public part is not to be had
  KeyPtr key;           // null: only the agent could sign
  std::string problem;  // why, "" when there is no such file
};

// Called when a key file is encrypted: the answer is that nobody knows the passphrase.
int NoPassphrase(const char* /*prompt*/, char* /*buffer*/, size_t /*size*/, int /*echo*/,
                 int /*verify*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

std::string BlobOf(ssh_key key) {
  char* base64 = nullptr;
  if (ssh_pki_export_pubkey_base64(key, &base64) != SSH_OK) return "";
  std::string blob;
  absl::Base64Unescape(base64, &blob);
  ssh_string_free_char(base64);
  return blob;
}

// libssh would wait for whoever writes to a pipe.
bool IsPlainFile(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

std::string PublicBlob(const std::string& path) {
  // Beside it, or in the part of it that is not encrypted.
  for (const std::string& file : {path + ".pub", path}) {
    ssh_key key = nullptr;
    if (!IsPlainFile(file) || ssh_pki_import_pubkey_file(file.c_str(), &key) != SSH_OK) continue;
    const KeyPtr owner(key);
    return BlobOf(key);
  }
  return "";
}

bool IsHardwareType(const std::string& type) {
  return type.substr(0, 3) == "sk-";
}

bool IsCertificate(const std::string& type) {
  return type.find("-cert-v") != std::string::npos;
}

void LoadPrivate(FileKey& file) {
  bool asked = false;
  ssh_key key = nullptr;
  const int result =
      ssh_pki_import_privkey_file(file.path.c_str(), nullptr, NoPassphrase, &asked, &key);
  if (result == SSH_OK) {
    file.key.reset(key);
    if (file.blob.empty()) file.blob = BlobOf(key);
  } else if (asked) {
    file.problem = "is encrypted: give it to your agent with ssh-add " + file.path;
  } else {
    file.problem = "is no private key that libssh can read: use transport openssh";
  }
}

FileKey LoadFile(const std::string& path) {
  FileKey file{.path = path, .blob = PublicBlob(path), .key = nullptr, .problem = ""};
  if (IsHardwareType(AgentKey{.blob = file.blob, .comment = ""}.Type())) {
    file.problem = "is on a security key: use transport openssh";
    return file;
  }
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) file.problem = strerror(errno);
  } else if (!S_ISREG(info.st_mode)) {
    file.problem = "is no plain file";
  } else if (info.st_uid == getuid() && (info.st_mode & 077) != 0) {
    file.problem = "can be read by others, so ssh does not take it: chmod 600 " + path;
  } else if (access(path.c_str(), R_OK) != 0) {
    file.problem = strerror(errno);
  } else {
    LoadPrivate(file);
  }
  return file;
}

std::string Fingerprint(const std::string& blob) {
  return PublicKey{.type = "", .blob = blob}.Fingerprint();
}

class Collector {
 public:
  Collector(const Target& target, const Limits& limits) : target_(target), limits_(limits) {}

  absl::StatusOr<Identities> Collect() {
    for (const std::string& path : target_.identity_files) files_.push_back(LoadFile(path));
    MUSTER_RETURN_IF_ERROR(AskAgent());
    if (target_.chosen_identities) AddFiles();
    if (!target_.identities_only) {
      for (const AgentKey& key : agent_keys_) AddAgentKey(key);
    }
    if (!target_.chosen_identities) AddFiles();
    return std::move(result_);
  }

 private:
  absl::Status AskAgent() {
    if (target_.agent.empty()) return absl::OkStatus();
    auto agent = Agent::Connect(target_.agent, limits_.AtMost(kAgentLimit));
    absl::Status status = agent.status();
    if (agent.ok()) {
      auto keys = agent->Identities(limits_.AtMost(kAgentLimit));
      status = keys.status();
      if (keys.ok()) {
        agent_keys_ = *std::move(keys);
        result_.agent = std::make_unique<Agent>(*std::move(agent));
      }
    }
    if (absl::IsCancelled(status)) return status;
    if (!status.ok()) {
      result_.skipped.push_back("agent at " + target_.agent + ": " + std::string(status.message()));
    }
    return absl::OkStatus();
  }

  bool Has(const std::string& blob) const {
    return std::any_of(result_.all.begin(), result_.all.end(),
                       [&blob](const Identity& one) { return one.blob == blob; });
  }

  void AddFiles() {
    for (FileKey& file : files_) {
      const auto held = std::find_if(agent_keys_.begin(), agent_keys_.end(),
                                     [&](const AgentKey& key) { return key.blob == file.blob; });
      if (!file.blob.empty() && held != agent_keys_.end()) {
        AddAgentKey(*held);
      } else if (file.key != nullptr && !Has(file.blob)) {
        result_.all.push_back({.name = "key " + file.path + " (" + Fingerprint(file.blob) + ")",
                               .blob = file.blob,
                               .key = std::move(file.key)});
      } else if (file.key == nullptr && !file.problem.empty()) {
        result_.skipped.push_back("key " + file.path + " " + file.problem);
      } else if (target_.chosen_identities && file.key == nullptr) {
        result_.skipped.push_back("key " + file.path + " is not there" +
                                  (file.blob.empty() ? "" : ", nor in the agent"));
      }
    }
  }

  void AddAgentKey(const AgentKey& key) {
    const std::string name = "agent's key " + key.comment + " (" + Fingerprint(key.blob) + ")";
    const std::string type = key.Type();
    if (Has(key.blob)) return;
    if (IsCertificate(type) || IsHardwareType(type)) {
      result_.skipped.push_back(name + " is " +
                                (IsCertificate(type) ? "a certificate" : "on a security key") +
                                ": use transport openssh");
      return;
    }
    result_.all.push_back({.name = name, .blob = key.blob, .key = nullptr});
  }

  const Target& target_;
  const Limits& limits_;
  std::vector<FileKey> files_;
  std::vector<AgentKey> agent_keys_;
  Identities result_;
};

}  // namespace

absl::StatusOr<Identities> CollectIdentities(const Target& target, const Limits& limits) {
  if (!target.public_key) return Identities();
  return Collector(target, limits).Collect();
}

}  // namespace muster::nodes::ssh
