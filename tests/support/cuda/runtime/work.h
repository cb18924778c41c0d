#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cnn::tests::emulated {

// A point in a stream's order, to which the record of an event refers. The driver's lock guards it.
struct Moment {
  bool reached = false;
  std::chrono::steady_clock::time_point at;
};
using EventState = std::shared_ptr<Moment>;

// A piece of work on a stream. A queue's thread runs it, never the thread that calls the runtime.
struct Work {
  std::string name;
  std::function<void()> body;     // may be empty: then it only orders other work
  std::vector<EventState> waits;  // all must be reached before it begins
  EventState done;                // reached when it has ended; may be null
  std::vector<const void*> uses;  // addresses in the memory that it may touch
};

// Random delays that queues insert before work. They cause orders of independent work that would
// not occur on a fast machine.
struct Delays {
  std::uint32_t seed = 1;
  int percent = 10;  // share of the work that is delayed
  std::chrono::microseconds longest{200};
};

}  // namespace cnn::tests::emulated
