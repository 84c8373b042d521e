#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "controller/api/connect.h"
#include "controller/api/server.h"
#include "controller/logs/file_registry.h"
#include "tests/api/fake_backend.h"
#include "tests/logs/attempt.h"
#include "tests/logs/temp_dir.h"

namespace muster::api {

// A control service on a real socket, with a fake controller behind it and a real log organ.
class ServerTest : public testing::Test {
 protected:
  ServerTest() { Start({}); }

  void Start(const Server::Options& options) {
    server_.reset();
    auto server = Server::Start(options, lock_, backend_, *logs_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::unique_ptr<v1::Control::Stub> Connect() {
    auto stub = api::Connect(dir_.path());
    EXPECT_TRUE(stub.ok()) << stub.status();
    return *std::move(stub);
  }

  logs::TempDir dir_;
  StateLock lock_ = *StateLock::Acquire(dir_.path());
  FakeBackend backend_;
  std::unique_ptr<logs::FileRegistry> logs_ = logs::FileRegistry::Make(logs::QuickOptions());
  std::unique_ptr<Server> server_;
};

}  // namespace muster::api
