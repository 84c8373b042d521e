#include "worker/facts/helper_main.h"

#include <malloc.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "worker/facts/answer_probe.h"

namespace muster::facts {

void RunProbeHelper(const std::string& state_dir, const std::string& fake_devices,
                    const std::string& kernel_log) {
  // For a process of some milliseconds: no configuration file of OpenSSL, no heap for each thread.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  mallopt(M_ARENA_MAX, 1);
  ProbeSurroundings surroundings;
  surroundings.state_dir = state_dir;
  surroundings.kernel_log = kernel_log;
  surroundings.fake_devices =
      static_cast<uint32_t>(std::strtoul(fake_devices.c_str(), nullptr, 10));
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const size_t equal = text.find('=');
    if (equal != std::string::npos)
      surroundings.environment.emplace_back(text.substr(0, equal), text.substr(equal + 1));
  }
  v1::Probe probe;
  if (!probe.ParseFromFileDescriptor(STDIN_FILENO)) _exit(1);
  const std::string answer = AnswerProbe(probe, surroundings).SerializeAsString();
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes += static_cast<char>(answer.size() >> static_cast<unsigned>(shift) & 0xff);
  bytes += answer;
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(STDOUT_FILENO, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);
    done += static_cast<size_t>(n);
  }
  // What the tools have left behind, and this process with it.
  if (getpgrp() == getpid()) kill(0, SIGKILL);
  _exit(0);  // not exit: threads may hang in the kernel
}

}  // namespace muster::facts
