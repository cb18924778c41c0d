#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cnn::tests::emulated {

// A point in the order of a stream: what a record of an event leaves behind. The driver's lock
// guards it.
struct Moment {
  bool reached = false;
  std::chrono::steady_clock::time_point at;
};
using EventState = std::shared_ptr<Moment>;

// A piece of work on a stream. It is queued and never run by the thread that calls the runtime.
struct Work {
  std::string name;
  std::function<void()> body;     // empty: only waits and is waited for
  std::vector<EventState> waits;  // all reached before it begins
  EventState done;                // reached when it has ended; may be null
  std::vector<const void*> uses;  // addresses of the memory that it may touch
};

// The delays that queues insert before their work, as a function of a seed: they make other orders
// of independent work happen than those of a fast machine.
struct Delays {
  std::uint32_t seed = 1;
  int percent = 10;  // of all work
  std::chrono::microseconds longest{200};
};

}  // namespace cnn::tests::emulated
