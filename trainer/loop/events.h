#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace muster::loop {

// JSON lines for the program that watches this rank (MUSTER_EVENT_FD):
// `{"event":"iteration","rank":0,"time":...,...}`. docs/training.md lists the events. Doubles keep
// all their digits; one that is not finite becomes null. Training never waits for the reader: a
// line that a full pipe can't take is dropped, and a closed one ends the writing. One thread.
class EventWriter {
 public:
  using Value = std::variant<int64_t, double, std::string>;
  using Fields = std::initializer_list<std::pair<std::string_view, Value>>;

  // -1: nobody watches. The descriptor stays the caller's.
  EventWriter(int fd, int64_t rank) : fd_(fd), rank_(rank) {}

  void Write(std::string_view event, Fields fields);
  int64_t dropped() const { return dropped_; }

 private:
  int fd_;
  int64_t rank_;
  int64_t dropped_ = 0;
};

}  // namespace muster::loop
