#include "worker/spool/log_spool.h"

#include <sys/stat.h>

#include <algorithm>

#include "worker/ranks/rank_folder.h"

namespace muster::spool {
namespace {

constexpr char kShorter[] =
    "the node's file is shorter than what was written, after a crash perhaps";

v1::Stream ToStream(size_t index) {
  return static_cast<v1::Stream>(index + 1);
}

}  // namespace

LogSpool::LogSpool(v1::AttemptId id, std::string attempt_folder, const worker::AckRecord& acks)
    : id_(std::move(id)), folder_(std::move(attempt_folder)) {
  for (const v1::LogAck& ack : acks.acks()) {
    if (ack.stream() < v1::STREAM_STDOUT || ack.stream() > v1::STREAM_EVENTS) continue;
    State& state = Get({ack.rank(), static_cast<size_t>(ack.stream()) - 1});
    state.size = state.sent = state.acked = ack.offset();
    state.lost = ack.lost();
    state.complete = state.end_sent = state.end_acked = ack.end();
  }
}

LogSpool::State& LogSpool::Get(const Key& key) {
  const auto it = streams_.find(key);
  if (it != streams_.end()) return it->second;
  const std::string rank_folder = ranks::RankFolder(folder_, key.first) + "/";
  const char* times = shim::kTimesFiles[key.second];
  StreamReader reader(rank_folder + shim::kLogFiles[key.second],
                      times == nullptr ? "" : rank_folder + times, rank_folder + shim::kFloorFile,
                      key.second);
  return streams_.emplace(key, State{std::move(reader)}).first->second;
}

void LogSpool::Grow(uint32_t rank, size_t stream, uint64_t size, bool complete) {
  State& state = Get({rank, stream});
  state.size = std::max(state.size, size);
  state.complete = state.complete || complete;
}

void LogSpool::CompleteFromFile(uint32_t rank) {
  for (size_t stream = 0; stream < shim::kNumStreams; ++stream) {
    const std::string path = ranks::RankFolder(folder_, rank) + "/" + shim::kLogFiles[stream];
    struct stat info;
    Grow(rank, stream, stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0,
         true);
  }
}

bool LogSpool::Ack(const v1::LogAck& ack) {
  if (ack.stream() < v1::STREAM_STDOUT || ack.stream() > v1::STREAM_EVENTS) return false;
  const auto it = streams_.find({ack.rank(), static_cast<size_t>(ack.stream()) - 1});
  if (it == streams_.end()) return false;
  State& state = it->second;
  bool changed = false;
  // The controller may be ahead of us after we lost our acks; it cannot be ahead of the file.
  const uint64_t offset = std::min(ack.offset(), state.size);
  if (ack.lost() > state.lost) {
    state.lost = ack.lost();
    changed = true;
  }
  if (offset > state.acked) {
    Move(state, std::max(state.sent, offset), offset);
    changed = true;
  } else if (!ack.end() && !state.end_acked) {
    // Nothing new, or less than we knew: the controller missed bytes, could not write them, or has
    // lost them.
    changed = changed || offset < state.acked;
    Move(state, offset, offset);
    state.end_sent = false;
  }
  if (ack.end() && state.complete && state.acked == state.size && !state.end_acked) {
    state.end_acked = state.end_sent = true;
    state.reader.Close();
    changed = true;
  }
  return changed;
}

void LogSpool::Move(State& state, uint64_t sent, uint64_t acked) {
  in_flight_ -= state.InFlight();
  if (sent < state.sent) state.jump = 0;
  state.sent = sent;
  state.acked = acked;
  in_flight_ += state.InFlight();
}

void LogSpool::Rewind() {
  for (auto& [key, state] : streams_) {
    Move(state, state.acked, state.acked);
    state.end_sent = state.end_acked;
  }
}

bool LogSpool::SendOne(const Key& key, State& state, ChunkSink& sink) {
  if (state.end_sent || in_flight_ >= kWindow) return false;
  if (state.sent >= state.size && !state.complete) return false;
  v1::LogChunk chunk;
  uint64_t from = state.sent;
  bool has_data = false;
  // A floor that rises while we read makes what was read worthless; the next try begins there.
  do {
    from = std::max(from, std::min(state.reader.Floor(), state.size));
    has_data = state.reader.Read(from, std::min(state.size, from + kWindow - in_flight_), chunk);
  } while (!has_data && state.reader.Floor() > from && from < state.size);
  if (!has_data && !state.complete) return false;
  if (!has_data && from < state.size) {
    // It will not come any more: the file has lost its tail, or the disk can't read a part of it.
    const std::string& error = state.reader.error();
    chunk.set_lost_why(error.empty() ? kShorter : error);
    from = error.empty() ? state.size : std::min(state.size, from + StreamReader::kMaxChunk);
  }
  const uint64_t count = chunk.data().size();
  const bool end = state.complete && from + count == state.size;
  *chunk.mutable_id() = id_;
  chunk.set_rank(key.first);
  chunk.set_stream(ToStream(key.second));
  chunk.set_offset(from);
  chunk.set_lost(from - state.sent);
  chunk.set_end(end);
  in_flight_ -= state.InFlight();
  if (from > state.sent) state.jump = from;
  state.sent = from + count;
  state.end_sent = end;
  in_flight_ += state.InFlight();
  sink.SendChunk(std::move(chunk));
  return true;
}

void LogSpool::Pump(ChunkSink& sink) {
  // Begin after the stream that was served last, so that a flood does not starve its neighbours.
  size_t idle = 0;
  auto it = streams_.upper_bound(last_served_);
  while (idle < streams_.size() && sink.Ready()) {
    if (it == streams_.end()) it = streams_.begin();
    if (SendOne(it->first, it->second, sink)) {
      idle = 0;
      last_served_ = it->first;
    } else {
      ++idle;
    }
    ++it;
  }
}

uint64_t LogSpool::AckedOf(uint32_t rank, size_t stream) const {
  const auto found = streams_.find({rank, stream});
  return found == streams_.end() ? 0 : found->second.acked;
}

uint64_t LogSpool::LostOf(uint32_t rank) const {
  uint64_t lost = 0;
  for (size_t stream = 0; stream < shim::kNumStreams; ++stream) {
    const auto found = streams_.find({rank, stream});
    if (found != streams_.end()) lost += found->second.lost;
  }
  return lost;
}

bool LogSpool::AllAcked() const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [](const auto& stream) { return stream.second.end_acked; });
}

worker::AckRecord LogSpool::Acks() const {
  worker::AckRecord record;
  for (const auto& [key, state] : streams_) {
    v1::LogAck* ack = record.add_acks();
    ack->set_rank(key.first);
    ack->set_stream(ToStream(key.second));
    ack->set_offset(state.acked);
    ack->set_end(state.end_acked);
    ack->set_lost(state.lost);
  }
  return record;
}

}  // namespace muster::spool
