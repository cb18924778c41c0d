#include "bench/plan/largest_size.h"

#include <algorithm>

namespace cnn::bench {
namespace {

constexpr std::int64_t most = 1 << 24;  // --batch_size is an int; larger steps are pointless

struct Point {
  std::int64_t size = 0;
  std::optional<std::size_t> bytes;
};

// Returns where a line through two points reaches the limit; without a line, halfway to twice the
// second.
std::int64_t meets(std::size_t limit, const Point& low, const Point& high) {
  if (!high.bytes || *high.bytes <= low.bytes.value()) {
    return low.size + (high.size - low.size) / 2;
  }
  const auto room = static_cast<double>(limit) - static_cast<double>(*low.bytes);
  const auto rise = static_cast<double>(*high.bytes - *low.bytes);
  const double reach = room / rise * static_cast<double>(high.size - low.size);
  return low.size + static_cast<std::int64_t>(std::min(reach, static_cast<double>(most)));
}

}  // namespace

std::int64_t largest_size(std::size_t limit, std::int64_t least, std::int64_t start,
                          const BytesOfSize& bytes_of) {
  const auto at = [&](std::int64_t size) { return Point{size, bytes_of(size)}; };
  const auto is_in = [&](const Point& point) { return point.bytes && *point.bytes <= limit; };
  Point fits = at(least);
  if (!is_in(fits)) {
    return 0;
  }
  Point fails = at(std::clamp<std::int64_t>(start, least + 1, most));
  while (is_in(fails)) {
    if (fails.size == most) {
      return most;
    }
    const std::int64_t guess = meets(limit, fits, fails) + 1;  // the first size that should not fit
    fits = fails;
    fails = at(std::clamp(guess, fits.size + 1, most));
  }
  while (fails.size - fits.size > 1) {
    const std::int64_t guess = meets(limit, fits, fails);
    const Point point = at(std::clamp(guess, fits.size + 1, fails.size - 1));
    (is_in(point) ? fits : fails) = point;
  }
  return fits.size;
}

std::int64_t last_that_runs(std::int64_t fits, std::int64_t fails,
                            const std::function<bool(std::int64_t size)>& runs) {
  while (fails - fits > 1) {
    const std::int64_t middle = fits + (fails - fits) / 2;
    (runs(middle) ? fits : fails) = middle;
  }
  return fits;
}

}  // namespace cnn::bench
