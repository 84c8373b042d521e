#include "controller/nodes/tcp.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "controller/nodes/dial.h"
#include "controller/nodes/resolve.h"

// Names with several addresses, scoped addresses, and name servers that do not answer: each in
// network and mount namespaces of its own.

namespace muster::nodes {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

const StopSignal kGoOn;

Limits Within(milliseconds limit) {
  return StartLimits(limit, kGoOn);
}

// A listener on a free port; the socket is closed at the end.
struct Listener {
  explicit Listener(const SocketAddress& where) {
    fd.reset(socket(where.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    SocketAddress bound = where;
    good = bind(fd.get(), reinterpret_cast<const sockaddr*>(&where.storage), where.size) == 0 &&
           listen(fd.get(), 4) == 0 &&
           getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.size) == 0;
    port = ntohs(reinterpret_cast<const sockaddr_in&>(bound.storage).sin_port);  // v6: same place
  }
  UniqueFd fd;
  bool good = false;
  uint16_t port = 0;
};

SocketAddress Numeric(const std::string& text, uint16_t port = 0) {
  const auto found = ResolveName(text, port, AF_UNSPEC, Within(milliseconds(1'000)));
  return found.ok() ? found->front() : SocketAddress{};
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

// Runs the test's body in a child with a loopback of its own and these files as /etc/hosts,
// /etc/resolv.conf and /etc/nsswitch.conf; what it prints is the failure.
void InOwnNetwork(const std::string& hosts, const std::function<std::string()>& body) {
  if (geteuid() != 0) GTEST_SKIP() << "namespaces need root";
  int out[2];
  ASSERT_EQ(pipe(out), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string folder = "/tmp/muster_names_XXXXXX";
    std::string said;
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0 || mkdtemp(folder.data()) == nullptr ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        system("ip link set lo up") != 0) {
      said = "no namespaces";
    }
    Write(folder + "/hosts", hosts);
    // Nobody answers there: packets to it are dropped, as by a dead server.
    Write(folder + "/resolv.conf", "nameserver 127.0.0.53\noptions timeout:30 attempts:5\n");
    Write(folder + "/nsswitch.conf", "hosts: files dns\n");
    for (const char* name : {"hosts", "resolv.conf", "nsswitch.conf"}) {
      const std::string target = std::string("/etc/") + name;
      if (access(target.c_str(), F_OK) != 0) continue;
      if (mount((folder + "/" + name).c_str(), target.c_str(), nullptr, MS_BIND, nullptr) != 0)
        said = "no bind mount";
    }
    if (said.empty()) said = body();
    for (const char* name : {"hosts", "resolv.conf", "nsswitch.conf"})
      umount2((std::string("/etc/") + name).c_str(), MNT_DETACH);
    std::filesystem::remove_all(folder);
    (void)!write(out[1], said.data(), said.size());
    _exit(0);
  }
  close(out[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(out[0], buffer, sizeof buffer)) > 0;) said.append(buffer, n);
  close(out[0]);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(said, "");
}

TEST(ConnectTcp, TheSecondAddressOfANameIsTriedWhenTheFirstIsDead) {
  // 127.0.0.1 refuses; 192.0.2.1 swallows what is sent to it.
  for (const std::string dead : {"127.0.0.1", "192.0.2.1"}) {
    InOwnNetwork(dead + " twofold\n127.0.0.9 twofold\n", [&]() -> std::string {
      if (system(
              "ip link add d0 type veth peer name d1 && ip link set d0 up && ip link set d1 up && "
              "ip addr add 192.0.2.2/24 dev d0 && "
              "ip neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev d0") != 0) {
        return "no link";
      }
      const Listener listener(Numeric("127.0.0.9"));
      if (!listener.good) return "no listener";
      const auto direct = DialTcp("twofold", listener.port, milliseconds(4'000), kGoOn);
      if (!direct.ok()) return direct.status().ToString();
      const auto fd = ConnectTcp("twofold", listener.port, AF_INET, Within(milliseconds(4'000)));
      return fd.ok() ? "" : fd.status().ToString();
    });
  }
}

TEST(ConnectTcp, EachAddressIsNamedWhenAllAreDead) {
  InOwnNetwork("127.0.0.8 twofold\n127.0.0.9 twofold\n", [] {
    const auto fd = ConnectTcp("twofold", 9, AF_UNSPEC, Within(milliseconds(4'000)));
    const std::string message(fd.status().message());
    return message == "127.0.0.8 port 9: connection refused; 127.0.0.9 port 9: connection refused"
               ? std::string()
               : "said: " + message;
  });
}

TEST(ConnectTcp, AScopedAddressGoesToItsLink) {
  InOwnNetwork("", []() -> std::string {
    if (system("ip link add eth7 type veth peer name eth8 && ip link set eth7 up && "
               "ip link set eth8 up && ip addr add fe80::77/64 dev eth7 nodad && "
               "ip addr add fe80::88/64 dev eth8 nodad") != 0) {
      return "no link";
    }
    const std::string address = "fe80::77%eth7";
    if (Numeric(address).Text() != address) return "parsed as " + Numeric(address).Text();
    const Listener listener(Numeric(address));
    if (!listener.good) return "no listener";
    const auto fd = DialTcp(address, listener.port, milliseconds(4'000), kGoOn);
    if (!fd.ok()) return fd.status().ToString();
    const auto none = DialTcp("fe80::77%nosuch", listener.port, milliseconds(1'000), kGoOn);
    return none.ok() ? "a link that is none was taken" : "";
  });
}

TEST(ResolveName, ANameServerThatDoesNotAnswerHoldsNobodyUp) {
  InOwnNetwork("127.0.0.9 known\n", []() -> std::string {
    // It is there, so that no ICMP ends the question, and says nothing.
    const UniqueFd server(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const SocketAddress address = Numeric("127.0.0.53", 53);
    if (bind(server.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0)
      return "no server";
    const auto count = [] {
      return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
    };
    const auto before = count();
    for (int i = 0; i < 5; ++i) {
      const auto found = ResolveName("slow.example", 22, AF_UNSPEC, Within(milliseconds(100)));
      if (!absl::IsDeadlineExceeded(found.status())) return found.status().ToString();
      if (found.status().message().find("name slow.example: the name server gave no answer within "
                                        "100 ms") == std::string_view::npos) {
        return found.status().ToString();
      }
    }
    if (count() > before + 1) return "a thread for each question: " + std::to_string(count());
    StopSignal stop;
    std::thread stopper([&] { stop.Set(); });
    const auto stopped =
        ResolveName("slow.example", 22, AF_UNSPEC, StartLimits(milliseconds(60'000), stop));
    stopper.join();
    if (!absl::IsCancelled(stopped.status())) return stopped.status().ToString();
    // Others are not held up by it.
    const auto known = ResolveName("known", 22, AF_UNSPEC, Within(milliseconds(5'000)));
    return known.ok() && known->front().Text() == "127.0.0.9" ? "" : known.status().ToString();
  });
}

TEST(ResolveName, ANameThatIsNoneIsSaidWithTheFix) {
  InOwnNetwork("", [] {
    std::ofstream("/etc/nsswitch.conf") << "hosts: files\n";
    const auto fd = DialTcp("nobody", 9, milliseconds(2'000), kGoOn);
    const std::string said = fd.status().ToString();
    return absl::IsFailedPrecondition(fd.status()) &&
                   said.find("name nobody: ") != std::string::npos &&
                   said.find("give the host's line an addr=IP") != std::string::npos
               ? std::string()
               : said;
  });
}

}  // namespace
}  // namespace muster::nodes
