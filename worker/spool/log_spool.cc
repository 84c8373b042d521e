#include "worker/spool/log_spool.h"

#include <sys/stat.h>

#include <algorithm>

#include "worker/ranks/rank_folder.h"

namespace muster::spool {
namespace {

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
    state.complete = state.end_sent = state.end_acked = ack.end();
  }
}

LogSpool::State& LogSpool::Get(const Key& key) {
  const auto it = streams_.find(key);
  if (it != streams_.end()) return it->second;
  const std::string rank_folder = ranks::RankFolder(folder_, key.first) + "/";
  const char* times = shim::kTimesFiles[key.second];
  StreamReader reader(rank_folder + shim::kLogFiles[key.second],
                      times == nullptr ? "" : rank_folder + times);
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
  if (offset > state.acked) {
    if (offset > state.sent) {
      in_flight_ -= state.sent - state.acked;
      state.sent = offset;
    } else {
      in_flight_ -= offset - state.acked;
    }
    state.acked = offset;
    changed = true;
  } else if (!ack.end() && !state.end_acked) {
    // Nothing new, or less than we knew: the controller missed bytes, could not write them, or has
    // lost them.
    changed = offset < state.acked;
    in_flight_ -= state.sent - state.acked;
    state.sent = state.acked = offset;
    state.end_sent = false;
  }
  if (ack.end() && state.complete && state.acked == state.size && !state.end_acked) {
    state.end_acked = state.end_sent = true;
    state.reader.Close();
    changed = true;
  }
  return changed;
}

void LogSpool::Rewind() {
  for (auto& [key, state] : streams_) {
    state.sent = state.acked;
    state.end_sent = state.end_acked;
  }
  in_flight_ = 0;
}

bool LogSpool::SendOne(const Key& key, State& state, ChunkSink& sink) {
  if (state.end_sent || in_flight_ >= kWindow) return false;
  v1::LogChunk chunk;
  const bool has_data =
      state.reader.Read(state.sent, std::min(state.size, state.sent + kWindow - in_flight_), chunk);
  const uint64_t count = chunk.data().size();
  const bool end = state.complete && (state.sent + count == state.size || !has_data);
  if (!has_data && !end) return false;
  if (end && !has_data)
    state.size = state.sent;  // the file lost its tail: what was read is all there is
  *chunk.mutable_id() = id_;
  chunk.set_rank(key.first);
  chunk.set_stream(ToStream(key.second));
  chunk.set_offset(state.sent);
  chunk.set_end(end);
  state.sent += count;
  state.end_sent = end;
  in_flight_ += count;
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
  }
  return record;
}

}  // namespace muster::spool
