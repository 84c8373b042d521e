#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "controller/cli/stage_run.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::StageResponse Two() {
  v1::StageResponse news;
  news.set_content_id(std::string(64, 'a'));
  news.set_files(3);
  news.set_bytes(100 << 20);
  for (const char* name : {"n1", "n2"}) {
    v1::StageHost& host = *news.add_hosts();
    host.set_host(name);
    host.mutable_status()->set_state(v1::STAGE_STATE_DONE);
    host.mutable_status()->set_bytes_fetched(100 << 20);
  }
  return news;
}

TEST(StageView, TheLineNamesTheSlowestHost) {
  v1::StageResponse news = Two();
  news.mutable_hosts(1)->mutable_status()->set_state(v1::STAGE_STATE_FETCHING);
  news.mutable_hosts(1)->mutable_status()->set_bytes_fetched(25 << 20);
  EXPECT_EQ(StageProgressLine(news, 80.4),
            "staging 100 MiB: 62 %, 1/2 hosts, 80 MB/s, slowest n2 fetching 25 %");
  news.mutable_hosts(1)->mutable_status()->set_state(v1::STAGE_STATE_FAILED);
  EXPECT_THAT(StageProgressLine(news, 0), HasSubstr("1/2 hosts (1 failed)"));
}

TEST(StageView, CodesAndRemarks) {
  v1::StageRequest request;
  v1::StageResponse end = Two();
  EXPECT_EQ(StageExitCode(request, end), 0);
  v1::StageStatus& status = *end.mutable_hosts(1)->mutable_status();
  status.add_damaged("lib/x.so: other content");
  status.set_num_damaged(3);
  EXPECT_EQ(StageExitCode(request, end), 0);
  EXPECT_THAT(StageText(request, end, Style()), HasSubstr("n2: mended: lib/x.so: other content"));
  EXPECT_THAT(StageText(request, end, Style()), HasSubstr("n2: ... and 2 more"));
  request.set_dry_run(true);
  EXPECT_EQ(StageExitCode(request, end), 120);
  EXPECT_THAT(StageText(request, end, Style()), HasSubstr("n2: damaged: lib/x.so: other content"));
  request.set_dry_run(false);
  status.set_state(v1::STAGE_STATE_FAILED);
  status.set_error("no space");
  EXPECT_EQ(StageExitCode(request, end), 121);
  EXPECT_THAT(StageText(request, end, Style()), HasSubstr("n2: failed: no space"));
  EXPECT_THAT(StageText(request, end, Style()), Not(HasSubstr("n1")));
  const auto json = nlohmann::json::parse(StageJson(request, end));
  EXPECT_EQ(json["code"], 121);
  EXPECT_EQ(json["hosts"][1]["error"], "no space");
  EXPECT_EQ(json["hosts"][0]["state"], "done");
}

}  // namespace
}  // namespace muster::cli
