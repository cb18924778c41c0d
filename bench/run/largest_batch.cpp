#include "bench/run/largest_batch.h"

#include <algorithm>

namespace cnn::bench {
namespace {

constexpr std::int64_t most = 1 << 24;  // --batch_size is an int; no step is sensible beyond this

struct Point {
  std::int64_t batch = 0;
  std::optional<std::size_t> bytes;
};

// Where a line through two points reaches the limit; halfway to twice the second without a line.
std::int64_t meets(std::size_t limit, const Point& low, const Point& high) {
  if (!high.bytes || *high.bytes <= low.bytes.value()) {
    return low.batch + (high.batch - low.batch) / 2;
  }
  const auto room = static_cast<double>(limit) - static_cast<double>(*low.bytes);
  const auto rise = static_cast<double>(*high.bytes - *low.bytes);
  const double reach = room / rise * static_cast<double>(high.batch - low.batch);
  return low.batch + static_cast<std::int64_t>(std::min(reach, static_cast<double>(most)));
}

}  // namespace

std::int64_t largest_batch(std::size_t limit, std::int64_t start, const BytesOfBatch& bytes_of) {
  const auto at = [&](std::int64_t batch) { return Point{batch, bytes_of(batch)}; };
  const auto is_in = [&](const Point& point) { return point.bytes && *point.bytes <= limit; };
  Point fits = at(1);
  if (!is_in(fits)) {
    return 0;
  }
  Point fails = at(std::clamp<std::int64_t>(start, 2, most));
  while (is_in(fails)) {
    if (fails.batch == most) {
      return most;
    }
    const std::int64_t guess = meets(limit, fits, fails) + 1;  // the first that should not fit
    fits = fails;
    fails = at(std::clamp(guess, fits.batch + 1, most));
  }
  while (fails.batch - fits.batch > 1) {
    const std::int64_t guess = meets(limit, fits, fails);
    const Point point = at(std::clamp(guess, fits.batch + 1, fails.batch - 1));
    (is_in(point) ? fits : fails) = point;
  }
  return fits.batch;
}

}  // namespace cnn::bench
