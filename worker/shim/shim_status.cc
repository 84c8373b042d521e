#include "worker/shim/shim_status.h"

#include "worker/shim/frame.h"

namespace muster::shim {
namespace {

constexpr std::string_view kMagic = "MUSTEXIT";
// Version 1 lacks the last two fields: shims of an older build live on when the daemon is replaced.
constexpr uint32_t kVersion = 2;
constexpr uint32_t kOldVersion = 1;

}  // namespace

std::string EncodeShimStatus(const ShimStatus& s) {
  FieldWriter out;
  out.U32(static_cast<uint32_t>(s.state));
  out.I32(s.shim_pid);
  out.U64(s.shim_start_ticks);
  out.I32(s.rank_pid);
  out.U64(s.rank_start_ticks);
  out.I64(s.started_ns);
  out.U8(s.stopped);
  out.U8(s.in_cgroup);
  out.I32(s.exit_code);
  out.I32(s.signal);
  out.U8(s.core_dumped);
  out.I64(s.ended_ns);
  out.U8(s.term_sent);
  out.U8(s.kill_sent);
  out.Bytes(s.error);
  out.Bytes(s.lost_error);
  for (const StreamStatus& stream : s.streams) {
    out.U64(stream.size);
    out.U64(stream.lost);
    out.U8(stream.eof);
  }
  out.U8(s.log_waits);
  out.U8(s.childless);
  return EncodeFrame(kMagic, kVersion, out.Take());
}

std::optional<ShimStatus> DecodeShimStatus(std::string_view bytes, std::string& error) {
  std::string ignored;
  auto payload = DecodeFrame(kMagic, kOldVersion, bytes, ignored);
  const bool old = payload.has_value();
  if (!old) payload = DecodeFrame(kMagic, kVersion, bytes, error);
  if (!payload) return std::nullopt;
  FieldReader in(*payload);
  ShimStatus s;
  const uint32_t state = in.U32();
  s.state = static_cast<ShimState>(state);
  s.shim_pid = in.I32();
  s.shim_start_ticks = in.U64();
  s.rank_pid = in.I32();
  s.rank_start_ticks = in.U64();
  s.started_ns = in.I64();
  s.stopped = in.U8() != 0;
  s.in_cgroup = in.U8() != 0;
  s.exit_code = in.I32();
  s.signal = in.I32();
  s.core_dumped = in.U8() != 0;
  s.ended_ns = in.I64();
  s.term_sent = in.U8() != 0;
  s.kill_sent = in.U8() != 0;
  s.error = in.Bytes();
  s.lost_error = in.Bytes();
  for (StreamStatus& stream : s.streams) {
    stream.size = in.U64();
    stream.lost = in.U64();
    stream.eof = in.U8() != 0;
  }
  if (!old) {
    s.log_waits = in.U8() != 0;
    s.childless = in.U8() != 0;
  }
  if (!in.Done() || state < 1 || state > 4) {
    error = "fields do not fit";
    return std::nullopt;
  }
  return s;
}

}  // namespace muster::shim
