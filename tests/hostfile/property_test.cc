#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <google/protobuf/util/message_differencer.h>

#include <set>
#include <string>

#include "controller/hostfile/hostfile.h"

namespace muster::hostfile {
namespace {

// Words that hostfiles are made of, whole and broken, so that random files reach deep into the
// parser.
rc::Gen<std::string> Fragment() {
  return rc::gen::element<std::string>(
      "node01", "node[01-03]", "n[1-2]m[3,4]", "10.0.0.1", "fd00::1", "[fd00::2]", "root@", ":8",
      " ", "\t", "\n", "\r\n", "\r", "#", "//", "slots=", "slots=8", "cpu=4", "gpus=0,2-3",
      "port=22", "user=x", "type=A100", "spare", "addr=10.1.0.1", "iface=eth0", "transport=ssh",
      "worker_port=1", "max_slots=9", "=", ",", "[", "]", "-", "@", ".", "%", "\xEF\xBB\xBF",
      "\xC2\xA0", std::string(1, '\0'), "localhost", "127.0.0.2", "0", "99999", "n[0-999999999]");
}

rc::Gen<std::string> RandomFile() {
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(Fragment()),
                      [](const std::vector<std::string>& parts) {
                        std::string out;
                        for (const std::string& part : parts) out += part;
                        return out;
                      });
}

void CheckResult(const Result& result, uint32_t lines) {
  RC_ASSERT(result.ok() == (result.inventory.hosts_size() > 0));
  RC_ASSERT(result.errors.size() <= 20U);
  uint32_t previous = 0;
  for (const Error& error : result.errors) {
    RC_ASSERT(error.line <= lines);
    RC_ASSERT(error.line == 0 || error.line >= previous);
    RC_ASSERT(error.other_line <= error.line);
    RC_ASSERT(!error.message.empty());
    previous = error.line;
  }
  RC_ASSERT(!ToJson(result).empty());
}

RC_GTEST_PROP(Properties, AnyFileGivesHostsOrErrorsWithLines, ()) {
  const std::string text = *RandomFile();
  const auto lines = static_cast<uint32_t>(1 + std::count(text.begin(), text.end(), '\n'));
  CheckResult(ParseHostfile(text), lines);
}

RC_GTEST_PROP(Properties, AnyBytesGiveHostsOrErrors, (const std::string& bytes)) {
  const auto lines = static_cast<uint32_t>(1 + std::count(bytes.begin(), bytes.end(), '\n'));
  CheckResult(ParseHostfile(bytes), lines);
}

RC_GTEST_PROP(Properties, AnyListGivesHostsOrErrors, ()) {
  const std::string text = *RandomFile();
  const auto items = static_cast<uint32_t>(1 + std::count(text.begin(), text.end(), ','));
  CheckResult(ParseHostList(text), items);
}

rc::Gen<v1::Host> RandomHost(uint32_t line) {
  return rc::gen::exec([line] {
    v1::Host host;
    host.set_line(line);
    const bool v6 = *rc::gen::arbitrary<bool>();
    const auto number = std::to_string(line);
    host.set_host(v6 ? "fd00::" + number : "node" + number + ".example.net");
    if (*rc::gen::arbitrary<bool>()) host.set_port(*rc::gen::inRange<uint32_t>(1, 65536));
    if (*rc::gen::arbitrary<bool>()) host.set_user("u" + std::to_string(*rc::gen::inRange(0, 999)));
    const int slots = *rc::gen::inRange(0, 3);
    if (slots == 1) host.set_slots(*rc::gen::inRange<uint32_t>(1, 4097));
    if (slots == 2) {
      for (const uint32_t gpu :
           *rc::gen::unique<std::vector<uint32_t>>(rc::gen::inRange<uint32_t>(0, 4096))) {
        host.add_gpus(gpu);
      }
      if (host.gpus_size() > 0) host.set_slots(static_cast<uint32_t>(host.gpus_size()));
    }
    if (*rc::gen::arbitrary<bool>()) host.set_max_slots(4096);
    if (*rc::gen::arbitrary<bool>()) host.set_type("H100_SXM+80G");
    host.set_spare(line > 1 && *rc::gen::arbitrary<bool>());
    if (*rc::gen::arbitrary<bool>()) host.set_addr("10.0." + number + ".1");
    if (*rc::gen::arbitrary<bool>()) host.set_iface("bond0.20");
    if (*rc::gen::arbitrary<bool>()) {
      host.set_transport(*rc::gen::element<std::string>("ssh", "direct", "local"));
    }
    if (*rc::gen::arbitrary<bool>()) host.set_worker_port(*rc::gen::inRange<uint32_t>(1, 65536));
    return host;
  });
}

std::string WriteHost(const v1::Host& host) {
  std::string out = (host.has_user() ? host.user() + "@" : "") + host.host();
  if (host.gpus_size() > 0) {
    std::string list;
    for (const uint32_t gpu : host.gpus()) list += (list.empty() ? "" : ",") + std::to_string(gpu);
    out += " gpus=" + list;
  } else if (host.has_slots()) {
    out += " slots=" + std::to_string(host.slots());
  }
  if (host.has_port()) out += " port=" + std::to_string(host.port());
  if (host.has_max_slots()) out += " max_slots=" + std::to_string(host.max_slots());
  if (host.has_type()) out += " type=" + host.type();
  if (host.spare()) out += " spare";
  if (host.has_addr()) out += " addr=" + host.addr();
  if (host.has_iface()) out += " iface=" + host.iface();
  if (host.has_transport()) out += " transport=" + host.transport();
  if (host.has_worker_port()) out += " worker_port=" + std::to_string(host.worker_port());
  return out + "\n";
}

RC_GTEST_PROP(Properties, WhatIsWrittenIsRead, ()) {
  const auto count = *rc::gen::inRange<uint32_t>(1, 12);
  v1::Inventory want;
  std::string text;
  for (uint32_t line = 1; line <= count; ++line) {
    *want.add_hosts() = *RandomHost(line);
    const v1::Host& host = want.hosts(static_cast<int>(line) - 1);
    RC_PRE(WriteHost(host).size() < 4096U);
    text += WriteHost(host);
  }
  const Result result = ParseHostfile(text);
  RC_LOG() << text << FormatErrors("file", result.errors);
  RC_ASSERT(google::protobuf::util::MessageDifferencer::Equals(result.inventory, want));
}

RC_GTEST_PROP(Properties, ListsExpandToDistinctHostsInOrder, ()) {
  const auto low = *rc::gen::inRange<uint32_t>(0, 2000);
  const auto size = *rc::gen::inRange<uint32_t>(1, 300);
  const auto width = *rc::gen::inRange<int>(0, 6);
  std::string first = std::to_string(low);
  if (static_cast<int>(first.size()) < width) first.insert(0, width - first.size(), '0');
  std::string last = std::to_string(low + size - 1);
  if (first[0] == '0' && first.size() > 1 && last.size() < first.size()) {
    last.insert(0, first.size() - last.size(), '0');
  }
  const Result result = ParseHostfile("n[" + first + "-" + last + "]");
  RC_ASSERT(result.ok());
  RC_ASSERT(static_cast<uint32_t>(result.inventory.hosts_size()) == size);
  RC_ASSERT(result.inventory.hosts(0).host() == "n" + first);
  RC_ASSERT(result.inventory.hosts(result.inventory.hosts_size() - 1).host() == "n" + last);
}

}  // namespace
}  // namespace muster::hostfile
