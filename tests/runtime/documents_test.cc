#include "controller/runtime/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::runtime {
namespace {

using testing::HasSubstr;

TEST(EventLine, IsOneJsonObject) {
  v1::JobEvent event;
  event.set_sequence(4);
  event.set_time_ns(17);
  event.set_kind("state");
  event.set_severity("error");
  event.set_text("a \"quoted\"\nline");
  event.set_state(v1::JOB_STATE_FAILED);
  event.set_host("n1");
  event.set_rank(0);
  EXPECT_EQ(EventLine(event),
            "{\"sequence\":4,\"time_ns\":17,\"kind\":\"state\",\"severity\":\"error\",\"text\":\"a "
            "\\\"quoted\\\"\\nline\",\"state\":\"failed\",\"host\":\"n1\",\"rank\":0}\n");
}

TEST(JobToml, ARecipeIsKept) {
  v1::JobSpec spec;
  spec.set_recipe("[job]\nname = \"x\"\n");
  EXPECT_EQ(JobToml(spec), spec.recipe());
}

TEST(JobToml, ACommandBecomesARecipe) {
  v1::JobSpec spec;
  spec.set_name("eval");
  spec.add_command("python3");
  spec.add_command("a \"b\"\\\n\x01");
  spec.mutable_parallel()->set_tp(2);
  auto& flag = *spec.add_flags();
  flag.set_name("fp8");
  auto& variable = *spec.add_env();
  variable.set_name("A");
  variable.set_value("1");
  EXPECT_EQ(JobToml(spec),
            "# Written by muster submit: the same job as a recipe.\n[job]\nname = \"eval\"\n"
            "command = [\"python3\", \"a \\\"b\\\"\\\\\\n?\"]\n\n[parallel]\ntp = "
            "2\n\n[flags]\n\"fp8\" = true\n\n"
            "[env]\n\"A\" = \"1\"\n");
}

}  // namespace
}  // namespace muster::runtime
