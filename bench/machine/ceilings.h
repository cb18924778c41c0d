#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/machine/backend.h"

namespace cnn::bench {

// The measurement, if it could be made, and a note about it: why it could not, or what disturbed
// it.
struct MeasuredCeilings {
  std::optional<Ceilings> ceilings{};
  std::vector<std::string> notes{};
};

// Measures the peak rates of the device with the backend's own kernels: a large product, and
// copying and reading in memory and in each cache. Each is repeated until the two best times agree.
// Takes about a second, and memory of its own of what is free then: call it outside timed regions.
// Throws nothing: whatever goes wrong is a note.
MeasuredCeilings measure_ceilings(const Backend& backend, DataType compute);

// Whether the two least of these times differ by 2 % at most.
bool best_two_agree(std::span<const double> seconds);

// How much may be read and written where `free` bytes are: far more than fits any cache, and at
// most half of what is free. Nothing if too little would remain to tell memory from caches.
std::optional<double> memory_set_bytes(double wanted, double largest_cache, double free);

}  // namespace cnn::bench
