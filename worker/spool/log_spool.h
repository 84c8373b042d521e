#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "muster/v1/worker.pb.h"
#include "worker/ranks/record.pb.h"
#include "worker/shim/shim_status.h"
#include "worker/spool/stream_reader.h"

namespace muster::spool {

// Where chunks go. Reactor thread only.
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  // Whether the stream to the controller takes more just now.
  virtual bool Ready() const = 0;
  virtual void SendChunk(v1::LogChunk chunk) = 0;
};

// Sends the log bytes of one attempt by offset, and remembers what the controller has made durable.
// The files on disk are the only buffer: at most kWindow bytes are on their way without an
// acknowledgement. What a quota has dropped, and what can't be read any more, is passed over, and
// the controller told how much it was. Reactor thread only.
class LogSpool {
 public:
  static constexpr uint64_t kWindow = 4 << 20;

  LogSpool(v1::AttemptId id, std::string attempt_folder, const worker::AckRecord& acks);

  // The log file of this stream has `size` bytes; `complete`: and will never have more.
  void Grow(uint32_t rank, size_t stream, uint64_t size, bool complete);
  // A stream whose size nobody told (its shim is lost): what the file has is all there will be.
  void CompleteFromFile(uint32_t rank);
  // False if it names a stream that does not exist, or changes nothing that must be kept. One that
  // brings nothing new asks for what was sent after it once more.
  bool Ack(const v1::LogAck& ack);
  // A new stream to the controller: whatever was not acknowledged is sent again.
  void Rewind();
  // Sends what is there, as far as window and sink allow; streams take turns.
  void Pump(ChunkSink& sink);

  // What the controller has of this stream; the rank's quota may free it.
  uint64_t AckedOf(uint32_t rank, size_t stream) const;
  // Bytes of this rank's output that were dropped, as the controller has counted them.
  uint64_t LostOf(uint32_t rank) const;
  // Every stream of every rank is complete and acknowledged to its end.
  bool AllAcked() const;
  worker::AckRecord Acks() const;

 private:
  struct State {
    StreamReader reader;
    uint64_t size = 0;
    uint64_t sent = 0;
    uint64_t acked = 0;
    uint64_t jump = 0;  // sending went on here after dropped bytes
    uint64_t lost = 0;  // as the controller has counted it
    bool complete = false;
    bool end_sent = false;
    bool end_acked = false;

    // Bytes on their way.
    uint64_t InFlight() const {
      const uint64_t from = std::max(acked, jump);
      return sent > from ? sent - from : 0;
    }
  };
  using Key = std::pair<uint32_t, size_t>;  // rank, stream

  State& Get(const Key& key);
  // Where sending goes on, and where the last acknowledgement was.
  void Move(State& state, uint64_t sent, uint64_t acked);
  // One chunk; false if there is nothing to send.
  bool SendOne(const Key& key, State& state, ChunkSink& sink);

  const v1::AttemptId id_;
  const std::string folder_;
  std::map<Key, State> streams_;
  uint64_t in_flight_ = 0;  // sum of InFlight()
  Key last_served_{};
};

}  // namespace muster::spool
