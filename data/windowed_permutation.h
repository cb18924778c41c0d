#pragma once

#include <cstdint>

namespace cnn::data {

// A pseudo-random order of 0 .. size-1 for examples that are contiguous on disk: runs of neighbours
// are put in random order, then all examples are shuffled within windows of many runs. A reader
// that prefetches whole runs one window ahead reads the disk sequentially and needs memory for one
// window. Each element is computed separately, equal for equal (size, seed, epoch).
class WindowedPermutation {
 public:
  static constexpr std::int64_t run = 32;  // 3.5 MB of ImageNet's records
  static constexpr std::int64_t window =
      16'384;  // examples, more than TensorFlow's buffer of 10000

  WindowedPermutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch);
  std::int64_t operator()(std::int64_t position) const;  // both in [0, size)

  // Returns the element at a place in the order of runs, before the shuffle within windows. The
  // places [n * window, (n + 1) * window) hold the same elements as the positions of that range.
  std::int64_t in_runs(std::int64_t place) const;

 private:
  std::int64_t size_;
  std::uint64_t seed_;
  std::int64_t epoch_;
  std::int64_t offset_;  // start of the first run, which differs between epochs
};

}  // namespace cnn::data
