#include "data/windowed_permutation.h"

#include <algorithm>

#include "data/permutation.h"
#include "data/random.h"
#include "runtime/divide_up.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

// Keys of the three random choices, which must be independent.
constexpr std::uint64_t offset_key = 1, run_key = 2, window_key = 3;

}  // namespace

WindowedPermutation::WindowedPermutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch)
    : size_(size), seed_(seed), epoch_(epoch), offset_(0) {
  check(size > 0, "a data set without examples");
  offset_ = static_cast<std::int64_t>(
      random_bits(random_bits(seed, offset_key), static_cast<std::uint64_t>(epoch)) %
      static_cast<std::uint64_t>(size));
}

std::int64_t WindowedPermutation::in_runs(std::int64_t place) const {
  const std::int64_t whole_runs = size_ / run;
  std::int64_t element = place;  // after the last whole run
  if (place < whole_runs * run) {
    const Permutation runs(whole_runs, random_bits(seed_, run_key), epoch_);
    element = runs(place / run) * run + place % run;
  }
  return (element + offset_) % size_;
}

std::int64_t WindowedPermutation::operator()(std::int64_t position) const {
  const std::int64_t number = position / window;
  const std::int64_t windows = divide_up(size_, window);
  const Permutation within(std::min(window, size_ - number * window),
                           random_bits(seed_, window_key), epoch_ * windows + number);
  return in_runs(number * window + within(position % window));
}

}  // namespace cnn::data
