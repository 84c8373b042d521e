#include "controller/logs/node_log.h"

#include <algorithm>

#include "common/status.h"
#include "common/utf8.h"
#include "controller/logs/fs_user.h"
#include "controller/logs/layout.h"

namespace muster::logs {
namespace {

// Beyond this, files are closed after each use. Below the usual limit of 1,024 descriptors a
// process.
constexpr int kMaxOpenFiles = 512;

// The times of a chunk that belong to it, on the controller's clock; a node that says something
// else is not believed.
std::vector<TimesRecord> TimesOf(const v1::LogChunk& chunk, int64_t clock_offset_ns) {
  std::vector<TimesRecord> times;
  times.reserve(static_cast<size_t>(chunk.times_size()));
  for (const v1::WriteTime& time : chunk.times()) {
    if (time.offset() < chunk.offset()) continue;
    if (time.offset() - chunk.offset() >= chunk.data().size()) continue;
    times.push_back({.offset = time.offset(), .realtime_ns = time.realtime_ns() - clock_offset_ns});
  }
  return times;
}

}  // namespace

void Outbox::Deliver(
    const v1::AttemptId& id,
    const std::function<void(const v1::AttemptId&, const absl::Status&)>& on_report) {
  for (auto& [ack, message] : acks) {
    if (ack) ack(message);
  }
  for (size_t i = 0; i < reports.size(); ++i) {
    const bool told = i > 0 && reports[i] == reports[i - 1];
    if (on_report && !told) on_report(id, reports[i]);
  }
  acks.clear();
  reports.clear();
}

NodeLog::NodeLog(const AttemptFiles& files, size_t node, OpenFiles& open_files, Packer& packer,
                 Growth& growth)
    : id_(files.id),
      uid_(files.uid),
      gid_(files.gid),
      first_rank_(files.plan.nodes(static_cast<int>(node)).first_rank()),
      clock_offset_ns_(node < files.clock_offsets_ns.size() ? files.clock_offsets_ns[node] : 0),
      open_files_(open_files),
      rotation_{.bytes = files.rotate_bytes,
                .pack = [&packer, uid = files.uid,
                         gid = files.gid](const std::string& path) { packer.Add(path, uid, gid); }},
      growth_(growth),
      merged_(MergedPath(files.output_dir, files.plan, node, files.id.attempt()), first_rank_,
              files.plan.nodes(static_cast<int>(node)).num_ranks(), RankWidth(files.plan.world()),
              rotation_, open_files) {
  const uint32_t end = first_rank_ + files.plan.nodes(static_cast<int>(node)).num_ranks();
  for (uint32_t rank = first_rank_; rank < end; ++rank) {
    const std::string folder = RankDir(files.output_dir, files.id.attempt(), rank);
    for (const v1::Stream stream : kStreams) {
      streams_.emplace_back(rank,
                            std::make_unique<StreamFile>(folder, stream, rotation_, open_files));
    }
  }
}

size_t NodeLog::GrowthIndex(const StreamState& state) const {
  return state.rank * kNumStreams + StreamIndex(state.file->stream());
}

NodeLog::StreamState* NodeLog::Find(uint32_t rank, v1::Stream stream) {
  const size_t index = StreamIndex(stream);
  if (index == kNumStreams || rank < first_rank_) return nullptr;
  const size_t position = (rank - first_rank_) * kNumStreams + index;
  return position < streams_.size() ? &streams_[position] : nullptr;
}

void NodeLog::RestoreEnd(const EndJournal::End& end) {
  absl::MutexLock lock(&mutex_);
  StreamState* state = Find(end.rank, end.stream);
  if (state == nullptr) return;
  state->ended = state->recorded = true;
  state->recorded_bytes = end.bytes;
}

bool NodeLog::EnsureRecovered(Outbox& out) {
  if (recovered_) return true;
  const absl::Status status = Recover(out);
  recovered_ = status.ok();
  if (recover_reported_ == recovered_) out.reports.push_back(status);
  recover_reported_ = !recovered_;
  return recovered_;
}

absl::Status NodeLog::Recover(Outbox& out) {
  for (StreamState& state : streams_) {
    StreamFile& file = *state.file;
    MUSTER_RETURN_IF_ERROR(file.Recover());
    growth_.SetSize(GrowthIndex(state), file.size());
    if (state.recorded) {
      growth_.SetEnded(GrowthIndex(state));
      file.set_durable(file.size());
      if (file.size() < state.recorded_bytes) {
        out.reports.push_back(absl::DataLossError(
            file.path() + ": " + std::to_string(state.recorded_bytes - file.size()) +
            " bytes that were here have been removed"));
      }
    }
    state.answer_due = file.size() > 0;
    file.Close();
  }
  MUSTER_RETURN_IF_ERROR(merged_.Recover());
  merge_due_ = true;  // the next pass brings in what the former process had no time for
  return absl::OkStatus();
}

NodeLog::Taken NodeLog::OnChunk(const v1::LogChunk& chunk, const nodes::LogSink::Ack& ack,
                                Outbox& out) {
  absl::MutexLock lock(&mutex_);
  StreamState* state = Find(chunk.rank(), chunk.stream());
  if (abandoned_ || state == nullptr) return {};
  state->ack = ack;
  dirty_.store(true);
  const ScopedFsUser user(uid_, gid_);
  if (!EnsureRecovered(out)) {
    state->failed = true;
    return {};
  }
  const uint64_t before = state->file->size();
  Take(chunk, *state, out);
  if (open_files_ > kMaxOpenFiles) state->file->Close();
  return {.bytes = state->file->size() - before, .ended = state->ended};
}

void NodeLog::Take(const v1::LogChunk& chunk, StreamState& state, Outbox& out) {
  StreamFile& file = *state.file;
  const uint64_t before = file.size();
  const uint64_t position = file.stream_size();
  const uint64_t lost_before = file.lost();
  const uint64_t chunk_end = chunk.offset() + chunk.data().size();
  if (state.ended && chunk_end > position) {
    state.answer_due = true;
    if (!state.reported) {
      out.reports.push_back(absl::DataLossError(file.path() + ": bytes came after the end"));
    }
    state.reported = true;
    return;
  }
  // All is here, and its end is on the way into the journal: the round answers.
  if (state.ended && !state.recorded) return;
  if (chunk.offset() > position && chunk.offset() - position > chunk.lost()) {
    // Bytes are missing because we refused them, or because the node began in the middle: asking
    // again is the cure.
    state.failed = true;
    return;
  }
  const absl::Status status =
      file.Append(chunk.offset(), chunk.data(), TimesOf(chunk, clock_offset_ns_), chunk.lost(),
                  chunk.lost_why());
  if (file.size() > before) growth_.SetSize(GrowthIndex(state), file.size());
  if (!status.ok()) {
    Fail(state, status, out);
  } else {
    if (state.reported) out.reports.push_back(absl::OkStatus());
    state.failed = state.reported = false;
    if (file.size() == before) state.answer_due = true;
    if (chunk.end() && chunk_end == file.stream_size()) state.ended = true;
  }
  if (file.lost() > lost_before) {
    out.reports.push_back(absl::DataLossError(
        file.path() + ": " + std::to_string(file.lost() - lost_before) + " bytes are lost: " +
        (chunk.lost_why().empty() ? "dropped on the node, the log quota was full"
                                  : ToValidUtf8(chunk.lost_why()))));
  }
  if (file.stream() == v1::STREAM_EVENTS) return;
  if (file.size() == before && !state.ended) return;
  const std::string_view data = chunk.data();
  const uint64_t known = position > chunk.offset() ? position - chunk.offset() : 0;
  const std::string_view fresh = data.substr(std::min<uint64_t>(data.size(), known));
  if (state.ended || file.lost() > lost_before || merged_.Worthwhile(state.rank, file, fresh))
    Merge(state, out);
}

void NodeLog::Merge(StreamState& state, Outbox& out) {
  const absl::Status status = merged_.Merge(state.rank, *state.file, state.ended);
  if (status.ok()) return;
  merge_due_ = true;
  if (!merge_reported_) out.reports.push_back(status);
  merge_reported_ = true;
}

void NodeLog::MergeAll(Outbox& out) {
  merge_due_ = false;
  for (StreamState& state : streams_) {
    if (state.file->stream() != v1::STREAM_EVENTS) Merge(state, out);
  }
  if (merge_due_ || !merge_reported_) return;
  merge_reported_ = false;
  out.reports.push_back(absl::OkStatus());
}

void NodeLog::Fail(StreamState& state, const absl::Status& status, Outbox& out) {
  state.failed = true;
  if (state.reported) return;
  state.reported = true;
  out.reports.push_back(status);
}

std::vector<SyncJob> NodeLog::Begin(Outbox& out) {
  std::vector<SyncJob> jobs;
  if (!dirty_.exchange(false)) return jobs;
  const ScopedFsUser user(uid_, gid_);
  absl::MutexLock lock(&mutex_);
  in_round_ = true;
  if (!EnsureRecovered(out)) return jobs;
  for (size_t i = 0; i < streams_.size(); ++i) {
    StreamFile& file = *streams_[i].file;
    if (file.durable() == file.size()) continue;
    auto fd = file.LogFd();
    if (!fd.ok()) {
      Fail(streams_[i], fd.status(), out);
      continue;
    }
    jobs.push_back({.stream = i,
                    .fd = *std::move(fd),
                    .size = file.size(),
                    .path = file.path(),
                    .folder = streams_[i].folder_synced ? "" : file.folder(),
                    .status = {}});
  }
  return jobs;
}

std::vector<EndJournal::End> NodeLog::Synced(const std::vector<SyncJob>& jobs, Outbox& out) {
  std::vector<EndJournal::End> ends;
  const ScopedFsUser user(uid_, gid_);
  absl::MutexLock lock(&mutex_);
  if (!in_round_ || !recovered_) return ends;
  for (const SyncJob& job : jobs) AfterSync(job, out);
  if (merge_due_) MergeAll(out);
  for (const StreamState& state : streams_) {
    if (!state.ended || state.recorded || state.file->durable() != state.file->size()) continue;
    ends.push_back(
        {.rank = state.rank, .stream = state.file->stream(), .bytes = state.file->size()});
  }
  return ends;
}

bool NodeLog::Conclude(const std::vector<EndJournal::End>& ends, const absl::Status& recorded,
                       TimePoint now, std::chrono::milliseconds retry, Outbox& out) {
  absl::MutexLock lock(&mutex_);
  if (!in_round_) return false;
  in_round_ = false;
  for (const EndJournal::End& end : ends) RecordEnd(*Find(end.rank, end.stream), recorded, out);
  bool again = merge_due_ || !recovered_;
  for (StreamState& state : streams_) {
    if (recovered_) Answer(state, now, retry, out);
    again = again || state.failed;
    if (open_files_ > kMaxOpenFiles / 2) state.file->Close();
  }
  if (again) dirty_.store(true);
  return again;
}

void NodeLog::RecordEnd(StreamState& state, const absl::Status& recorded, Outbox& out) {
  if (!recorded.ok()) {
    Fail(state, recorded, out);
    return;
  }
  state.recorded = state.answer_due = true;
  state.failed = state.reported = false;
  growth_.SetEnded(GrowthIndex(state));
  state.file->Close();
}

void NodeLog::AfterSync(const SyncJob& job, Outbox& out) {
  StreamState& state = streams_[job.stream];
  if (job.status.ok()) {
    state.folder_synced = true;
    state.file->set_durable(job.size);
    state.answer_due = true;
    return;
  }
  Fail(state, job.status, out);
  // The kernel has dropped what it could not write: those bytes must come again.
  state.ended = state.recorded;
  if (const absl::Status status = state.file->Rewind(); !status.ok()) Fail(state, status, out);
  growth_.SetSize(GrowthIndex(state), state.file->size());
}

void NodeLog::Answer(StreamState& state, TimePoint now, std::chrono::milliseconds retry,
                     Outbox& out) {
  if (state.failed && now >= state.ask_again) {
    state.ask_again = now + retry;
    state.answer_due = true;
  }
  if (!state.answer_due) return;
  state.answer_due = false;
  v1::LogAck ack;
  *ack.mutable_id() = id_;
  ack.set_rank(state.rank);
  ack.set_stream(state.file->stream());
  ack.set_offset(state.file->stream_durable());
  ack.set_lost(state.file->lost());
  ack.set_end(state.recorded);
  out.acks.emplace_back(state.ack, std::move(ack));
}

void NodeLog::Abandon() {
  absl::MutexLock lock(&mutex_);
  abandoned_ = true;
}

bool NodeLog::Done() const {
  absl::MutexLock lock(&mutex_);
  return abandoned_ || std::all_of(streams_.begin(), streams_.end(),
                                   [](const StreamState& state) { return state.recorded; });
}

void NodeLog::Finish(Outbox& out) {
  const ScopedFsUser user(uid_, gid_);
  absl::MutexLock lock(&mutex_);
  if (const absl::Status status = merged_.Sync(); !status.ok()) out.reports.push_back(status);
  for (StreamState& state : streams_) state.file->Close();
  merged_.Close();
}

}  // namespace muster::logs
