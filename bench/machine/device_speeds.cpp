#include "bench/machine/device_speeds.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "runtime/error.h"
#include "runtime/seconds_since.h"

namespace cnn::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t bytes = std::size_t{64} << 20U;  // some milliseconds on a link

// Returns the minimum seconds of a few runs, after an untimed run that places the memory.
template <class Copies>
double best_seconds(const Copies& copies) {
  constexpr int runs = 3;
  copies();
  double best = 0;
  for (int run = 0; run < runs; ++run) {
    const Clock::time_point start = Clock::now();
    copies();
    const double seconds = seconds_since(start);
    best = run == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

}  // namespace

std::optional<Link> measure_link(Device& device) {
  try {
    const Buffer there = device.allocate(2 * bytes), here = device.allocate_host(2 * bytes);
    const auto out = device.make_stream(Lane::copy_out), in = device.make_stream(Lane::copy_in);
    const auto copy_out = [&] { out->copy(here.data(), there.data(), bytes); };
    const auto copy_in = [&] { in->copy(there.data() + bytes, here.data() + bytes, bytes); };
    const double out_seconds = best_seconds([&] {
      copy_out();
      out->synchronize();
    });
    const double in_seconds = best_seconds([&] {
      copy_in();
      in->synchronize();
    });
    const double both_seconds = best_seconds([&] {
      copy_out();
      copy_in();
      out->synchronize();
      in->synchronize();
    });
    const auto amount = static_cast<double>(bytes);
    Link link{.out = amount / out_seconds, .in = amount / in_seconds};
    constexpr double shared = 1.1;  // concurrent copies take longer than the longer one alone
    if (both_seconds > shared * std::max(out_seconds, in_seconds)) {
      link.both = 2 * amount / both_seconds;
    }
    return link;
  } catch (const DoesNotFit&) {
    return std::nullopt;
  }
}

std::optional<double> measure_memory_speed(Device& device, std::int64_t cache_bytes) {
  try {
    constexpr int copies = 4;
    const std::size_t far_more = 4 * static_cast<std::size_t>(cache_bytes);
    const std::size_t copied = std::max(bytes, far_more);
    const Buffer from = device.allocate(copied), to = device.allocate(copied);
    const auto stream = device.make_stream(Lane::compute);
    const double seconds = best_seconds([&] {
      for (int copy = 0; copy < copies; ++copy) {
        stream->copy(to.data(), from.data(), copied);
      }
      stream->synchronize();
    });
    return 2.0 * copies * static_cast<double>(copied) / seconds;
  } catch (const DoesNotFit&) {
    return std::nullopt;
  }
}

}  // namespace cnn::bench
