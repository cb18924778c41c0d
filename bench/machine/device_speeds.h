#pragma once

#include <cstdint>
#include <optional>

#include "bench/machine/backend.h"

namespace cnn::bench {

// Measures copies between a device and pinned host memory: each direction alone, then both
// together. Takes some milliseconds and frees its memory on both. `both` is 0 if the directions do
// not slow each other down. Nothing: too little memory for the measurement.
std::optional<Link> measure_link(Device& device);

// Returns bytes read plus written per second by copies within the memory of a device whose largest
// cache has so many bytes. Nothing: too little memory.
std::optional<double> measure_memory_speed(Device& device, std::int64_t cache_bytes);

}  // namespace cnn::bench
