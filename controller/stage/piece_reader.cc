#include "controller/stage/piece_reader.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/read_at.h"
#include "common/sha256.h"
#include "common/status.h"
#include "common/unique_fd.h"

namespace muster::stage {

PieceReader::PieceReader(std::shared_ptr<const ScannedTree> scanned, Done done)
    : scanned_(std::move(scanned)), done_(std::move(done)), thread_([this] { Run(); }) {}

PieceReader::~PieceReader() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
}

void PieceReader::Want(const std::string& host, uint32_t piece) {
  absl::MutexLock lock(&mutex_);
  wanted_.push_back({host, piece});
}

void PieceReader::Run() {
  const auto ready = [this] {
    mutex_.AssertReaderHeld();
    return stop_ || !wanted_.empty();
  };
  while (true) {
    Wanted wanted;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&ready));
      if (stop_) return;
      wanted = std::move(wanted_.front());
      wanted_.pop_front();
    }
    done_(wanted.host, wanted.piece, Read(wanted.piece));
  }
}

absl::StatusOr<std::string> PieceReader::Read(uint32_t piece) const {
  const uint64_t manifest_pieces = PiecesOf(scanned_->manifest.size());
  if (piece < manifest_pieces) return scanned_->manifest.substr(piece * kPieceBytes, kPieceBytes);
  const auto number = static_cast<uint32_t>(piece - manifest_pieces);
  if (number >= scanned_->tree.num_pieces())
    return absl::InvalidArgumentError("a host asks for a piece that is none");
  const PiecePlace place = scanned_->tree.Locate(number);
  const std::string& path = scanned_->paths[place.entry];
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  const absl::Status changed =
      absl::FailedPreconditionError(path + " was changed while it was staged; stage it again");
  if (!fd) return errno == ENOENT ? changed : PosixError("open " + path);
  auto bytes = ReadAt(fd.get(), place.offset, place.size, path);
  if (absl::IsOutOfRange(bytes.status())) return changed;
  if (bytes.ok() && Sha256(*bytes) != scanned_->tree.Sum(number)) return changed;
  return bytes;
}

}  // namespace muster::stage
