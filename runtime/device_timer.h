#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device.h"
#include "runtime/tensor.h"

namespace cnn {

// Times work on a stream of a device, on memory filled with numbers of either sign around one.
class DeviceTimer {
 public:
  explicit DeviceTimer(Device& device);  // which must outlive the timer

  Device& device() const { return device_; }
  Stream& stream() const { return *stream_; }

  // Allocates memory for elements of a type and fills it. positive: no number is below zero, as a
  // variance must be.
  Buffer filled(std::size_t bytes, DataType type, bool positive = false);
  // Returns the seconds of one run of what enqueue() gives to stream(), in the fastest of some
  // rounds.
  double seconds_of(const std::function<void()>& enqueue);
  // Returns the same for alternatives, which run in turn, so that a disturbance meets all of them.
  // Alternatives that take over three times as long as the fastest at their first timed run are not
  // run again.
  std::vector<double> seconds_of_each(std::span<const std::function<void()>> alternatives);

 private:
  double seconds_of_one(const std::function<void()>& enqueue, int runs);
  void fill_pattern(DataType type, bool positive);

  Device& device_;
  // Where the stream writes times to, also after a run that failed between them.
  std::chrono::steady_clock::time_point idle_, start_, end_;
  std::unique_ptr<Stream> stream_;
  Buffer pattern_;  // host bytes that tensors are filled with
};

}  // namespace cnn
