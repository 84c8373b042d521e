#include "controller/logs/reader.h"

#include <algorithm>
#include <functional>

#include "common/status.h"
#include "common/suggest.h"
#include "controller/logs/layout.h"

namespace muster::logs {
namespace {

constexpr size_t kBufferTotal = 4 << 20;
constexpr size_t kBufferLeast = 2 << 10;

template <typename List, typename Value>
bool Selected(const List& list, const Value& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

template <typename List>
absl::Status CheckCoordinates(const std::string& name, const List& wanted, uint32_t size) {
  for (const uint32_t value : wanted) {
    if (value < std::max(size, 1U)) continue;
    return absl::InvalidArgumentError(name + " " + std::to_string(value) + ": the job has " + name +
                                      (size > 1 ? " 0 to " + std::to_string(size - 1) : " 0 only"));
  }
  return absl::OkStatus();
}

bool WantsRank(const v1::LogsRequest& request, const v1::RankPlan& rank) {
  return Selected(request.ranks(), rank.rank()) && Selected(request.tp(), rank.tp()) &&
         Selected(request.pp(), rank.pp()) && Selected(request.cp(), rank.cp()) &&
         Selected(request.dp(), rank.dp());
}

absl::Status CheckRequest(const v1::Plan& plan, const v1::LogsRequest& request) {
  for (const uint32_t rank : request.ranks()) {
    if (rank >= static_cast<uint32_t>(plan.ranks_size())) {
      return absl::InvalidArgumentError("rank " + std::to_string(rank) +
                                        ": the job has ranks 0 to " +
                                        std::to_string(plan.ranks_size() - 1));
    }
  }
  MUSTER_RETURN_IF_ERROR(CheckCoordinates("tp", request.tp(), plan.tp()));
  MUSTER_RETURN_IF_ERROR(CheckCoordinates("pp", request.pp(), plan.pp()));
  MUSTER_RETURN_IF_ERROR(CheckCoordinates("cp", request.cp(), plan.cp()));
  MUSTER_RETURN_IF_ERROR(CheckCoordinates("dp", request.dp(), plan.dp()));
  std::vector<std::string> hosts;
  for (const v1::NodePlan& node : plan.nodes()) hosts.push_back(node.host().host());
  for (const std::string& host : request.hosts()) {
    if (!Selected(hosts, host)) {
      return absl::InvalidArgumentError("host " + host + " is not one of the job's" +
                                        DidYouMean(host, hosts));
    }
  }
  for (const int stream : request.streams()) {
    if (StreamIndex(static_cast<v1::Stream>(stream)) == kNumStreams) {
      return absl::InvalidArgumentError("unknown stream " + std::to_string(stream));
    }
  }
  return absl::OkStatus();
}

bool WantsStream(const v1::LogsRequest& request, v1::Stream stream) {
  if (request.streams().empty()) return stream != v1::STREAM_EVENTS;
  return Selected(request.streams(), static_cast<int>(stream));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Reader>> Reader::Make(const std::string& output_dir,
                                                     uint32_t attempt, const v1::Plan& plan,
                                                     const v1::LogsRequest& request) {
  MUSTER_RETURN_IF_ERROR(CheckRequest(plan, request));
  struct Wanted {
    uint32_t rank;
    std::string host;
    v1::Stream stream;
  };
  std::vector<Wanted> wanted;
  for (const v1::RankPlan& rank : plan.ranks()) {
    if (!WantsRank(request, rank)) continue;
    if (rank.node() >= static_cast<uint32_t>(plan.nodes_size())) continue;
    const std::string& host = plan.nodes(static_cast<int>(rank.node())).host().host();
    if (!Selected(request.hosts(), host)) continue;
    for (const v1::Stream stream : kStreams) {
      if (WantsStream(request, stream)) wanted.push_back({rank.rank(), host, stream});
    }
  }
  std::unique_ptr<Reader> reader(new Reader());
  if (request.has_tail_lines()) reader->tail_lines_ = request.tail_lines();
  if (request.has_since_ns()) reader->since_ns_ = request.since_ns();
  const size_t buffer = std::max(kBufferLeast, kBufferTotal / std::max<size_t>(1, wanted.size()));
  for (Wanted& want : wanted) {
    const std::string folder = RankDir(output_dir, attempt, want.rank);
    reader->sources_.push_back(
        {.growth_index = want.rank * kNumStreams + StreamIndex(want.stream),
         .path = folder + "/" + LogName(want.stream),
         .cursor = StreamCursor(folder, want.rank, std::move(want.host), want.stream, buffer)});
    StreamCursor& cursor = reader->sources_.back().cursor;
    if (request.times() || !request.grep().empty()) cursor.WithTimes();
    if (!request.grep().empty()) cursor.WholeLines();
  }
  return reader;
}

absl::Status Reader::Extend(const Growth& growth) {
  for (Source& source : sources_) {
    // The end first: a stream that has ended has its last size.
    const bool ended = growth.ended(source.growth_index) || growth.complete();
    source.cursor.Extend(growth.size(source.growth_index), ended);
  }
  return SeekOnce();
}

absl::Status Reader::ExtendFromFiles(bool ended) {
  for (Source& source : sources_) {
    MUSTER_ASSIGN_OR_RETURN(const uint64_t size, LogSource(source.path).Size());
    source.cursor.Extend(size, ended);  // a file that is not there is a stream that has not begun
  }
  return SeekOnce();
}

absl::Status Reader::SeekOnce() {
  extended_ = true;
  for (Source& source : sources_) {
    if (since_ns_) MUSTER_RETURN_IF_ERROR(source.cursor.SeekTime(*since_ns_));
    if (tail_lines_) MUSTER_RETURN_IF_ERROR(source.cursor.SeekTail(*tail_lines_));
  }
  since_ns_.reset();
  tail_lines_.reset();
  return absl::OkStatus();
}

absl::Status Reader::Queue(size_t source, TimePoint now) {
  MUSTER_ASSIGN_OR_RETURN(sources_[source].queued, sources_[source].cursor.Ready(now));
  if (!sources_[source].queued) return absl::OkStatus();
  heap_.push_back({.key = sources_[source].cursor.key(), .source = source});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  return absl::OkStatus();
}

absl::Status Reader::Refill(TimePoint now) {
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i].queued || !sources_[i].cursor.has_unread()) continue;
    MUSTER_RETURN_IF_ERROR(Queue(i, now));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<v1::LogsResponse>> Reader::Next(TimePoint now) {
  if (heap_.empty() || extended_) MUSTER_RETURN_IF_ERROR(Refill(now));
  extended_ = false;
  if (heap_.empty()) return std::nullopt;
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
  const size_t source = heap_.back().source;
  heap_.pop_back();
  const int64_t until = heap_.empty() ? std::numeric_limits<int64_t>::max() : heap_.front().key;
  v1::LogsResponse run = sources_[source].cursor.Take(until);
  MUSTER_RETURN_IF_ERROR(Queue(source, now));
  return run;
}

}  // namespace muster::logs
