#include "controller/nodes/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

namespace muster::nodes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

const RemoteCommand kRemote = {.musterd = "/opt/m d/musterd", .name = "n1"};

v1::Host MakeHost() {
  v1::Host host;
  host.set_host("n1");
  host.set_addr("10.0.0.1");
  return host;
}

TEST(SplitWordsTest, AsAShellWouldWithoutItsMagic) {
  EXPECT_EQ(*SplitWords("a  b\tc\n"), (Words{"a", "b", "c"}));
  EXPECT_EQ(*SplitWords(R"(a 'b c' "d \"e\" \$" f\ g '' x'y'z)"),
            (Words{"a", "b c", R"(d "e" \$)", "f g", "", "xyz"}));
  EXPECT_EQ(*SplitWords("$HOME *.c `x` ~"), (Words{"$HOME", "*.c", "`x`", "~"}));
  EXPECT_EQ(*SplitWords(""), Words());
  EXPECT_EQ(*SplitWords(R"("\x")"), (Words{R"(\x)"}));
}

TEST(SplitWordsTest, WhatIsNotClosedIsAnError) {
  EXPECT_EQ(SplitWords("a 'b").status().message(), "a quote ' is not closed");
  EXPECT_EQ(SplitWords("\"").status().message(), "a quote \" is not closed");
  EXPECT_EQ(SplitWords("a\\").status().message(), "ends with a backslash");
}

TEST(TemplateTest, MustNameTheHost) {
  EXPECT_TRUE(CheckTemplate({"docker", "exec", "-i", "{host}"}).ok());
  EXPECT_TRUE(CheckTemplate({"x", "--to={addr}:7"}).ok());
  EXPECT_TRUE(CheckTemplate({"x", "{host}", "{{.Names}}", "{print}", "{"}).ok());
  EXPECT_THAT(CheckTemplate({}).message(), HasSubstr("no program"));
  EXPECT_THAT(CheckTemplate({"docker", "{command}"}).message(), HasSubstr("no {host}"));
  EXPECT_THAT(CheckTemplate({"docker", "{hots}"}).message(), HasSubstr("did you mean 'host'"));
}

TEST(TemplateTest, WordsStayWords) {
  const auto words =
      FillTemplate({"docker", "exec", "-i", "x-{host}/{addr}", "{print}"}, MakeHost(), kRemote);
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_THAT(*words, ElementsAre("docker", "exec", "-i", "x-n1/10.0.0.1", "{print}", "/bin/sh",
                                  "-c", HasSubstr("bridge"), "sh", "/opt/m d/musterd", "n1"));
}

TEST(TemplateTest, TheCommandInOneWord) {
  const auto words = FillTemplate({"su", "{host}", "-c", "{command}"}, MakeHost(), kRemote);
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_THAT(*words, ElementsAre("su", "n1", "-c", RemoteLine(kRemote)));
}

TEST(TemplateTest, UserAndPortOnlyWhereTheHostfileHasThem) {
  v1::Host host = MakeHost();
  EXPECT_THAT(FillTemplate({"x", "{user}@{host}"}, host, kRemote).status().message(),
              HasSubstr("no user for this host: write user=..."));
  host.set_user("u");
  host.set_port(7);
  EXPECT_EQ((*FillTemplate({"{user}@{host}:{port}"}, host, kRemote))[0], "u@n1:7");
}

TEST(OpensshTest, UserOptionsComeFirstAndNothingIsAsked) {
  v1::Host host = MakeHost();
  host.set_port(2222);
  host.set_user("u");
  const Words words = OpensshWords({"-F", "f"}, host, 9, kRemote);
  EXPECT_EQ(Words(words.begin(), words.begin() + 10),
            (Words{"ssh", "-o", "BatchMode=yes", "-T", "-F", "f", "-p", "2222", "-l", "u"}));
  EXPECT_THAT(words, testing::Contains("ConnectTimeout=9"));
  EXPECT_EQ(Words(words.end() - 3, words.end()), (Words{"--", "n1", RemoteLine(kRemote)}));
}

// What a login shell makes of the line: it must start the program that the path names, whatever
// the path.
class RemoteLineTest : public testing::TestWithParam<const char*> {
 protected:
  static std::string Output(const std::string& shell, const std::string& line) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(ends[1], STDOUT_FILENO);
      execl(shell.c_str(), shell.c_str(), "-c", line.c_str(), nullptr);
      _exit(99);
    }
    close(ends[1]);
    std::string out(1000, '\0');
    FILE* file = fdopen(ends[0], "r");
    out.resize(fread(out.data(), 1, out.size(), file));
    fclose(file);
    waitpid(pid, nullptr, 0);
    return out;
  }
};

TEST_P(RemoteLineTest, EveryLoginShellStartsTheSameProgram) {
  if (access(GetParam(), X_OK) != 0) GTEST_SKIP() << GetParam() << " is not installed";
  for (const char* odd : {"plain", "a b", "it's", "$HOME", "a\"b", "*;&|<>()", "a`b"}) {
    std::string folder = "/tmp/muster_remote_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    const std::string inner = folder + "/" + odd;
    std::filesystem::create_directory(inner);
    const std::string program = inner + "/musterd";
    FILE* file = fopen(program.c_str(), "w");
    fputs("#!/bin/sh\necho \"$*\"\n", file);
    fclose(file);
    chmod(program.c_str(), 0755);
    EXPECT_EQ(Output(GetParam(), RemoteLine({.musterd = program, .name = "n-1"})),
              "bridge --name n-1\n")
        << program;
    std::filesystem::remove_all(folder);
  }
}

INSTANTIATE_TEST_SUITE_P(Shells, RemoteLineTest,
                         testing::Values("/bin/sh", "/bin/bash", "/bin/csh", "/usr/bin/fish",
                                         "/usr/bin/zsh"));

}  // namespace
}  // namespace muster::nodes
