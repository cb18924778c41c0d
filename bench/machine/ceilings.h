#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/machine/backend.h"

namespace cnn::bench {

// The measured ceilings, if the measurement succeeded, and notes about failures or disturbances.
struct MeasuredCeilings {
  std::optional<Ceilings> ceilings{};
  std::vector<std::string> notes{};
};

// Measures the peak rates of the device with the backend's kernels: a large matrix product, and
// copies and reads in memory and in each cache. Repeats each until the two best times agree. Takes
// about a second and allocates part of the free memory: call it outside timed regions. Throws
// nothing: every failure becomes a note.
MeasuredCeilings measure_ceilings(const Backend& backend, DataType compute);

// Returns whether the two smallest times differ by at most 2 %.
bool best_two_agree(std::span<const double> seconds);

// Returns the bytes to read and write out of `free` bytes: far more than any cache holds, and at
// most half of the free bytes. Nothing if too little remains to distinguish memory from caches.
std::optional<double> memory_set_bytes(double wanted, double largest_cache, double free);

}  // namespace cnn::bench
