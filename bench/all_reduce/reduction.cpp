#include "bench/all_reduce/reduction.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>

#include "bench/ranks/interruption.h"
#include "bench/ranks/rank_context.h"
#include "bench/ranks/rank_exchange.h"
#include "runtime/error.h"
#include "runtime/seconds_since.h"

namespace cnn::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t numbers_at_once = 2;  // that ranks exchange

// Returns a small whole number, so that all sums are exact, also in 16 bits, for up to 32 ranks.
float whole_number(int rank, std::size_t element) {
  const std::size_t mixed = element * 2654435761U + static_cast<std::size_t>(rank) * 40503U;
  return static_cast<float>(static_cast<int>(mixed >> 7U & 0xfU) - 8);
}

}  // namespace

Timing timing_of(std::vector<double> samples) {
  std::ranges::sort(samples);
  const std::size_t half = samples.size() / 2;
  const double median =
      samples.size() % 2 != 0 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
  return {samples.front(), median};
}

double worse_of(double one, double other) { return std::isnan(one) || one >= other ? one : other; }

int repetitions(std::size_t bytes) {
  constexpr std::size_t enough = std::size_t{4} << 20U;
  return static_cast<int>(std::clamp<std::size_t>(enough / bytes, 1, 100));
}

void Copy::operator()() const {
  std::memcpy(to_.data(), from_.data(), from_.size() * sizeof(float));
}

void Update::operator()() const {
  const allreduce::simd::Operand operand{values_.data()};
  float* const to = values_.data();
  loops_.sum({&operand, 1, &to, 1, values_.size(), false, 1.0F});
}

Reduction::Reduction(const RankEnvironment& environment, const allreduce::Settings& settings,
                     std::size_t most, Interruption& interruption)
    : transport_(environment.transport),
      loops_(environment.loops),
      interruption_(interruption),
      speaks_for_process_(environment.world != nullptr || transport_.rank() == 0),
      numbers_(transport_, environment.loops, settings.topology, numbers_at_once),
      exchange_(environment.exchange) {
  const std::size_t bytes = most * sizeof(float);
  if (environment.device == nullptr) {
    communicator_ =
        std::make_unique<allreduce::BucketCommunicator>(transport_, environment.loops, settings);
    buffer_ = {reinterpret_cast<float*>(transport_.allocate_shared(bytes).data()), most};
    return;
  }
  Device& device = *environment.device->backend.device;
  stream_ = device.make_stream(Lane::communicate);
  device_room_ = environment.device->shared_memory ? environment.device->shared_memory(bytes)
                                                   : device.allocate(bytes);
  host_buffer_ = device.allocate_host(bytes);
  buffer_ = {reinterpret_cast<float*>(host_buffer_.data()), most};
}

allreduce::Candidate Reduction::choice(std::size_t bucket) const {
  if (exchange_ == nullptr) {
    return communicator_->choice(first_ + bucket);
  }
  return exchange_->is_timed() ? exchange_->choice(first_ + bucket) : allreduce::Candidate{};
}

void Reduction::add_bucket(std::size_t elements) {
  std::size_t used = 0;
  for (const std::span<float>& bucket : buckets_) {
    used += bucket.size();
  }
  check(used + elements <= buffer_.size(), "a benchmark's buckets are larger than its buffer");
  buckets_.push_back(buffer_.subspan(used, elements));
  if (exchange_ != nullptr) {
    exchange_->on_device()->prepare(first_ + buckets_.size() - 1, elements);
  }
}

void Reduction::reserve(std::size_t elements) {
  if (exchange_ != nullptr) {
    exchange_->on_device()->reserve(elements);
  } else {
    communicator_->reserve(elements);
  }
}

void Reduction::remove_buckets() {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (exchange_ != nullptr) {
      exchange_->on_device()->release(first_ + i);
    } else {
      communicator_->release(first_ + i);
    }
  }
  first_ += buckets_.size();
  buckets_.clear();
}

std::span<float> Reduction::on_device(std::span<const float> bucket) {
  float* const begin = reinterpret_cast<float*>(device_room_.data());
  return {begin + (bucket.data() - buffer_.data()), bucket.size()};
}

void Reduction::upload() {
  for (const std::span<float>& bucket : buckets_) {
    const auto bytes = std::as_writable_bytes(on_device(bucket));
    stream_->copy(bytes.data(), std::as_bytes(bucket).data(), bytes.size());
  }
}

void Reduction::download() {
  for (const std::span<float>& bucket : buckets_) {
    const auto bytes = std::as_writable_bytes(bucket);
    stream_->copy(bytes.data(), std::as_bytes(on_device(bucket)).data(), bytes.size());
  }
  stream_->synchronize();
}

void Reduction::reduce_on_device(float factor) {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const std::span<float> piece = on_device(buckets_[i]);
    exchange_->on_device()->all_reduce(*stream_, first_ + i, {&piece, 1}, factor);
  }
  stream_->synchronize();
}

void Reduction::reduce_all(float factor) {
  if (exchange_ != nullptr) {
    reduce_on_device(factor);
    return;
  }
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    communicator_->all_reduce(first_ + i, {&buckets_[i], 1}, factor);
  }
}

void Reduction::reduce() { reduce_all(1 / static_cast<float>(transport_.ranks())); }

double Reduction::error() {
  std::size_t position = 0;
  for (const std::span<float>& bucket : buckets_) {
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      bucket[i] = whole_number(transport_.rank(), position + i);
    }
    position += bucket.size();
  }
  if (exchange_ != nullptr) {
    upload();
  }
  reduce_all(1);
  if (exchange_ != nullptr) {
    download();
  }
  double worst = 0;
  position = 0;
  for (const std::span<float>& bucket : buckets_) {
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      double sum = 0;
      for (int rank = 0; rank < transport_.ranks(); ++rank) {
        sum += whole_number(rank, position + i);
      }
      worst = worse_of(worst, std::abs(sum - bucket[i]));
    }
    position += bucket.size();
  }
  for (const double of_rank : numbers_.gather({&worst, 1})) {
    worst = worse_of(worst, of_rank);
  }
  return worst;
}

// Returns the stop reason; only one thread of a process reports it.
double Reduction::stop_reason() const {
  return speaks_for_process_ ? interruption_.stop_reason() : 0;
}

void Reduction::agree() {
  const double mine = stop_reason();
  hear(numbers_.gather({&mine, 1}), 1);
}

// Reads the stop reasons: `numbers` has `each` numbers of every rank, the first of which is its
// stop_reason.
void Reduction::hear(std::span<const double> numbers, std::size_t each) {
  for (std::size_t at = 0; at < numbers.size() && !stops_; at += each) {
    const auto stop_reason = static_cast<int>(numbers[at]);
    stops_ = stop_reason != 0;
    if (stops_ && speaks_for_process_) {
      interruption_.agree(stop_reason, static_cast<int>(at / each));
    }
  }
}

std::vector<Timing> Reduction::time(const InterleavedTiming& timing) {
  const std::size_t count = timing.candidates.size();
  std::vector<std::vector<double>> samples(count);
  for (int round = -timing.warm_up; round < timing.rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      if (stops_) {
        return {};
      }
      numbers_.barrier();
      const Clock::time_point start = Clock::now();
      for (int time = 0; time < timing.repetitions; ++time) {
        timing.candidates[i]();
      }
      const double mine = seconds_since(start) / timing.repetitions;
      const std::array<double, 2> told{mine, stop_reason()};
      const std::span<const double> all = numbers_.gather(told);
      double slowest = 0;
      for (std::size_t rank = 0; rank < all.size(); rank += told.size()) {
        slowest = std::max(slowest, all[rank]);
      }
      hear(all.subspan(1), told.size());
      if (round >= 0) {
        samples[i].push_back(slowest);
      }
    }
  }
  std::vector<Timing> timings;
  timings.reserve(count);
  for (std::vector<double>& values : samples) {
    timings.push_back(timing_of(std::move(values)));
  }
  return timings;
}

}  // namespace cnn::bench
