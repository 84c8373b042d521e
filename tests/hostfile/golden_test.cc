#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "controller/hostfile/hostfile.h"

// Every hostfile of tests/golden/hostfiles gives its verdict; so does every case of
// host-option.json.

namespace muster::hostfile {
namespace {

using nlohmann::json;

std::filesystem::path GoldenFolder() {
  const char* golden = std::getenv("MUSTER_GOLDEN");
  return std::filesystem::path(golden == nullptr ? "tests/golden" : golden) / "hostfiles";
}

std::string ReadAll(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

void ExpectVerdict(const Result& result, const json& verdict) {
  const json got = json::parse(ToJson(result));
  if (!verdict.contains("error")) {
    EXPECT_EQ(got["hosts"], verdict["hosts"]) << FormatErrors("file", result.errors);
    EXPECT_EQ(got["warnings"], verdict["warnings"]);
    return;
  }
  const json& want = verdict["error"];
  ASSERT_FALSE(result.ok()) << "expected: " << want["why"];
  EXPECT_EQ(result.inventory.hosts_size(), 0);
  EXPECT_EQ(got["error"]["line"], want["line"]) << want["why"];
  const std::string message = got["error"]["message"];
  if (want.contains("other_line")) {
    EXPECT_EQ(got["error"]["other_line"], want["other_line"]);
    EXPECT_NE(message.find(std::to_string(want["other_line"].get<int>())), std::string::npos)
        << message;
  }
  for (const std::string& text : want.value("mentions", std::vector<std::string>())) {
    EXPECT_NE(Lower(message).find(Lower(text)), std::string::npos)
        << "'" << text << "' is not in: " << message;
  }
}

TEST(Golden, Files) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(GoldenFolder())) {
    if (entry.path().extension() != ".hostfile") continue;
    SCOPED_TRACE(entry.path().filename().string());
    auto verdict_path = entry.path();
    verdict_path.replace_extension(".json");
    ExpectVerdict(ReadHostfile(entry.path()), json::parse(ReadAll(verdict_path)));
    ++count;
  }
  EXPECT_GE(count, 60U);
}

TEST(Golden, HostLists) {
  for (const json& test : json::parse(ReadAll(GoldenFolder() / "host-option.json"))["cases"]) {
    SCOPED_TRACE(test["arg"]);
    ExpectVerdict(ParseHostList(test["arg"].get<std::string>()), test);
  }
}

}  // namespace
}  // namespace muster::hostfile
