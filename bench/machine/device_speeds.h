#pragma once

#include <optional>

#include "bench/machine/backend.h"

namespace cnn::bench {

// Copies between a device and pinned memory of its host: alone in each direction, then in both at
// once. Takes some milliseconds and a little memory of both, which it gives back. `both` is 0 where
// the directions do not slow each other down. Nothing: there is too little memory to measure.
std::optional<Link> measure_link(Device& device);

// Bytes read and written in a second by copies within the device's memory. Nothing: as above.
std::optional<double> measure_memory_speed(Device& device);

}  // namespace cnn::bench
