#include "controller/nodes/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "controller/nodes/remote_command.h"

namespace muster::nodes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

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
      FillTemplate({"docker", "exec", "-i", "x-{host}/{addr}", "{print}"}, MakeHost());
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_THAT(*words, ElementsAre("docker", "exec", "-i", "x-n1/10.0.0.1", "{print}", "/bin/sh",
                                  "-c", HasSubstr("head")));
}

TEST(TemplateTest, TheCommandInOneWord) {
  const auto words = FillTemplate({"su", "{host}", "-c", "{command}"}, MakeHost());
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_THAT(*words, ElementsAre("su", "n1", "-c", RemoteLine()));
}

TEST(TemplateTest, UserAndPortOnlyWhereTheHostfileHasThem) {
  v1::Host host = MakeHost();
  EXPECT_THAT(FillTemplate({"x", "{user}@{host}"}, host).status().message(),
              HasSubstr("no user for this host: write user=..."));
  host.set_user("u");
  host.set_port(7);
  EXPECT_EQ((*FillTemplate({"{user}@{host}:{port}"}, host))[0], "u@n1:7");
}

TEST(OpensshTest, UserOptionsComeFirstAndNothingIsAsked) {
  v1::Host host = MakeHost();
  host.set_port(2222);
  host.set_user("u");
  const Words words = OpensshWords({"-F", "f"}, host, 9);
  EXPECT_EQ(Words(words.begin(), words.begin() + 10),
            (Words{"ssh", "-o", "BatchMode=yes", "-T", "-F", "f", "-p", "2222", "-l", "u"}));
  EXPECT_THAT(words, testing::Contains("ConnectTimeout=9"));
  EXPECT_EQ(Words(words.end() - 3, words.end()), (Words{"--", "n1", RemoteLine()}));
}

// What a login shell makes of the line: it must run the script that comes on stdin, and leave what
// follows that to the script's own programs.
class RemoteLineTest : public testing::TestWithParam<const char*> {
 protected:
  static std::string Output(const std::string& shell, const std::string& input) {
    int in[2];
    int out[2];
    EXPECT_EQ(pipe(in), 0);
    EXPECT_EQ(pipe(out), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      execl(shell.c_str(), shell.c_str(), "-c", RemoteLine().c_str(), nullptr);
      _exit(99);
    }
    close(in[0]);
    close(out[1]);
    EXPECT_EQ(write(in[1], input.data(), input.size()), static_cast<ssize_t>(input.size()));
    std::string text(1000, '\0');
    FILE* file = fdopen(out[0], "r");
    text.resize(fread(text.data(), 1, text.size(), file));
    fclose(file);
    close(in[1]);
    waitpid(pid, nullptr, 0);
    return text;
  }
};

TEST_P(RemoteLineTest, EveryLoginShellRunsTheScript) {
  if (access(GetParam(), X_OK) != 0) GTEST_SKIP() << GetParam() << " is not installed";
  const std::string script =
      "f() {\n  printf '%s!' \"$1\"\n}\nx='it is $HOME'\nf \"$x\" \\\n  2>&1\n";
  EXPECT_EQ(Output(GetParam(), ForRemote(script)), "it is $HOME!");
}

INSTANTIATE_TEST_SUITE_P(Shells, RemoteLineTest,
                         testing::Values("/bin/sh", "/bin/bash", "/bin/csh", "/usr/bin/fish",
                                         "/usr/bin/zsh"));

}  // namespace
}  // namespace muster::nodes
