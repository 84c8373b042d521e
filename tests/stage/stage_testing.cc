#include "tests/stage/stage_testing.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <random>
#include <utility>

#include "worker/stage/files.h"

namespace muster::stage {

namespace fs = std::filesystem;

TempDir::TempDir() {
  std::string name = (fs::temp_directory_path() / "muster-stage-XXXXXX").string();
  path_ = mkdtemp(name.data());
}

TempDir::~TempDir() {
  (void)RemoveTree(path_);
}

void Write(const std::string& path, std::string_view bytes) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string Noise(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

ScannedTree Scan(const std::string& folder) {
  const std::atomic<bool> stop{false};
  auto scanned = ScanTree({folder}, stop);
  EXPECT_TRUE(scanned.ok()) << scanned.status();
  return *std::move(scanned);
}

std::string Listing(const std::string& folder) {
  std::vector<std::string> lines;
  for (const auto& item : fs::recursive_directory_iterator(folder)) {
    struct stat info;
    lstat(item.path().c_str(), &info);
    std::string line = item.path().lexically_relative(folder).string() + " ";
    if (item.is_symlink()) {
      line += "-> " + fs::read_symlink(item.path()).string();
    } else {
      line += std::to_string(info.st_mode);
      if (item.is_regular_file())
        line += " " + std::to_string(std::hash<std::string>()(Read(item.path())));
    }
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

TestNode::TestNode(std::string state_dir, const ScannedTree& scanned,
                   std::chrono::milliseconds disk_patience)
    : scanned_(scanned) {
  signal(SIGPIPE, SIG_IGN);  // as the staging process does
  begin.set_content_id(Tree::ContentId(scanned.manifest));
  begin.set_manifest_bytes(scanned.manifest.size());
  begin.set_key(std::string(32, 'k'));
  begin.set_listen_address("127.0.0.1");
  auto transfer = std::make_shared<Transfer>(
      std::move(state_dir), [this](const v1::StageReport& report) { Take(report); }, disk_patience);
  {
    absl::MutexLock lock(&mutex_);
    transfer_ = std::move(transfer);
  }
  // As the real one: it answers from a thread of its own.
  feeder_ = std::thread([this] {
    while (true) {
      uint32_t piece = 0;
      {
        const auto ready = [this] {
          mutex_.AssertReaderHeld();
          return stop_ || !wanted_.empty();
        };
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(&ready));
        if (stop_) return;
        piece = wanted_.front();
        wanted_.erase(wanted_.begin());
      }
      const uint64_t manifest = PiecesOf(scanned_.manifest.size());
      std::string bytes;
      if (piece < manifest) {
        bytes = scanned_.manifest.substr(piece * kPieceBytes, kPieceBytes);
      } else {
        const PiecePlace place = scanned_.tree.Locate(static_cast<uint32_t>(piece - manifest));
        bytes = stage::Read(scanned_.paths[place.entry]).substr(place.offset, place.size);
      }
      if (tamper) tamper(piece, bytes);
      {
        absl::MutexLock lock(&mutex_);
        bytes_from_controller_ += bytes.size();
      }
      Send(piece, bytes);
    }
  });
}

TestNode::~TestNode() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  feeder_.join();
  Kill();
}

void TestNode::Kill() {
  std::shared_ptr<Transfer> transfer;  // ends outside of the lock, which its reports take
  absl::MutexLock lock(&mutex_);
  transfer.swap(transfer_);
}

void TestNode::Order(v1::StageOrder order) {
  order.set_transfer(7);
  std::shared_ptr<Transfer> transfer;
  {
    absl::MutexLock lock(&mutex_);
    transfer = transfer_;
  }
  if (transfer) transfer->Take(order);
}

void TestNode::Begin() {
  v1::StageOrder order;
  *order.mutable_begin() = begin;
  Order(std::move(order));
}

void TestNode::FetchFromController() {
  v1::StageOrder order;
  order.mutable_source();
  Order(std::move(order));
}

void TestNode::FetchFrom(const TestNode& peer) {
  v1::StageOrder order;
  order.mutable_source()->set_node(3);
  order.mutable_source()->set_address("127.0.0.1");
  {
    absl::MutexLock lock(&peer.mutex_);
    order.mutable_source()->set_port(peer.port_);
  }
  Order(std::move(order));
}

void TestNode::Send(uint32_t piece, const std::string& bytes) {
  v1::StageOrder order;
  order.mutable_data()->set_piece(piece);
  order.mutable_data()->set_data(bytes);
  Order(std::move(order));
}

void TestNode::Take(const v1::StageReport& report) {
  absl::MutexLock lock(&mutex_);
  if (report.has_listening()) port_ = report.listening().port();
  if (report.has_status()) {
    status_ = report.status();
    ++num_statuses_;
  }
  if (report.has_lost()) lost_.push_back(report.lost().error());
  for (const uint32_t piece : report.want().pieces()) wanted_.push_back(piece);
}

bool TestNode::WaitFor(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return false;
}

v1::StageStatus TestNode::WaitForEnd() {
  EXPECT_TRUE(WaitFor([this] { return status().state() >= v1::STAGE_STATE_DONE; }));
  return status();
}

v1::StageStatus TestNode::Run() {
  Begin();
  FetchFromController();
  return WaitForEnd();
}

uint64_t TestNode::bytes_from_controller() const {
  absl::MutexLock lock(&mutex_);
  return bytes_from_controller_;
}

std::vector<std::string> TestNode::lost() const {
  absl::MutexLock lock(&mutex_);
  return lost_;
}

uint64_t TestNode::num_statuses() const {
  absl::MutexLock lock(&mutex_);
  return num_statuses_;
}

v1::StageStatus TestNode::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

}  // namespace muster::stage
