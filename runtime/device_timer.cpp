#include "runtime/device_timer.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

namespace cnn {
namespace {

constexpr std::size_t operand_chunk_bytes = std::size_t{4} << 20U;
constexpr int rounds = 3, runs_per_round = 4;

// Alternatives have more rounds, each of as many runs as make it long enough for the clock.
constexpr int rounds_of_each = 5;
constexpr double min_round = 1e-3, max_runs = 32;
// An alternative whose first timed run takes so many times the fastest one's is not run again.
constexpr double hopeless = 3;

// Values around one of either sign, in the bits of a type. Zeros would draw less power and so run
// at higher clocks than real data does.
std::uint32_t two_halves(std::uint32_t random, DataType type) {
  // Exponents of 2^-3 to 2^0: four neighbours below the type's bias.
  const std::uint32_t bias = type == DataType::bf16 ? 127 : 15;
  const std::uint32_t mantissa_bits = type == DataType::bf16 ? 7 : 10;
  const auto half = [&](std::uint32_t bits) {
    const std::uint32_t exponent = bias - (bits >> 13U & 3U);
    return (bits & 0x8000U) | exponent << mantissa_bits | (bits & ((1U << mantissa_bits) - 1));
  };
  return half(random & 0xffffU) | half(random >> 16U) << 16U;
}

std::uint32_t one_float(std::uint32_t random) {
  return (random & 0x80000000U) | (127U - (random >> 23U & 3U)) << 23U | (random & 0x7fffffU);
}

std::uint32_t word_of(std::uint32_t random, DataType type) {
  switch (type) {
    case DataType::f32:
      return one_float(random);
    case DataType::f16:
    case DataType::bf16:
      return two_halves(random, type);
    case DataType::i32:  // places and labels: zero is within every range
      return 0;
    case DataType::u8:
      break;
  }
  return random;
}

// The sign bits of a word that holds one or two real numbers.
std::uint32_t signs_of(DataType type) { return size_of(type) == 2 ? 0x80008000U : 0x80000000U; }

}  // namespace

DeviceTimer::DeviceTimer(Device& device)
    : device_(device),
      stream_(device.make_stream(Lane::compute)),
      pattern_(device.allocate_host(operand_chunk_bytes)) {}

void DeviceTimer::fill_pattern(DataType type, bool positive) {
  const std::uint32_t cleared = positive ? signs_of(type) : 0;
  std::uint32_t state = 12345;
  for (std::size_t at = 0; at < operand_chunk_bytes; at += sizeof(state)) {
    state = state * 1664525U + 1013904223U;
    const std::uint32_t word = word_of(state ^ state >> 15U, type) & ~cleared;
    std::memcpy(pattern_.data() + at, &word, sizeof(word));
  }
}

Buffer DeviceTimer::filled(std::size_t bytes, DataType type, bool positive) {
  Buffer buffer = device_.allocate(bytes);
  stream_->synchronize();  // the pattern may still be on its way to another tensor
  fill_pattern(type, positive);
  for (std::size_t at = 0; at < bytes; at += operand_chunk_bytes) {
    stream_->copy(buffer.data() + at, pattern_.data(), std::min(operand_chunk_bytes, bytes - at));
  }
  return buffer;
}

double DeviceTimer::seconds_of_one(const std::function<void()>& enqueue, int runs) {
  stream_->stamp(start_);
  for (int run = 0; run < runs; ++run) {
    enqueue();
  }
  stream_->stamp(end_);
  stream_->synchronize();
  return std::chrono::duration<double>(end_ - start_).count() / runs;
}

double DeviceTimer::seconds_of(const std::function<void()>& enqueue) {
  enqueue();  // the first run loads the kernel
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    // An untimed run keeps the device busy while the host enqueues the timed ones: otherwise the
    // time of a short kernel would include the latency of a launch on an idle device. The first
    // stamp on a GPU waits for all work before it, so one precedes that run.
    stream_->stamp(idle_);
    enqueue();
    best = std::min(best, seconds_of_one(enqueue, runs_per_round));
  }
  return best;
}

std::vector<double> DeviceTimer::seconds_of_each(
    std::span<const std::function<void()>> alternatives) {
  std::vector<double> best;
  for (const std::function<void()>& enqueue : alternatives) {
    enqueue();  // the first run loads the kernel
    best.push_back(seconds_of_one(enqueue, 1));
  }
  if (best.empty()) {
    return best;
  }
  const double fastest = *std::ranges::min_element(best);
  const int runs = static_cast<int>(std::clamp(min_round / fastest, 1.0, max_runs));
  const std::vector<double> first = best;
  for (int round = 0; round < rounds_of_each; ++round) {
    for (std::size_t i = 0; i < alternatives.size(); ++i) {
      if (first[i] <= hopeless * fastest) {
        best[i] = std::min(best[i], seconds_of_one(alternatives[i], runs));
      }
    }
  }
  return best;
}

}  // namespace cnn
