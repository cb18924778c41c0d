#include "bench/all_reduce/reduction.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>

#include "runtime/error.h"

namespace cnn::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_contestants = 3;

// Whole and small, so that every sum of them is exact also in 16 bits, for up to 32 ranks.
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

int in_a_row(std::size_t bytes) {
  constexpr std::size_t enough = std::size_t{4} << 20U;
  return static_cast<int>(std::clamp<std::size_t>(enough / bytes, 1, 100));
}

void Copy::operator()() const {
  std::memcpy(to_.data(), from_.data(), from_.size() * sizeof(float));
}

Reduction::Reduction(allreduce::Transport& transport, const allreduce::simd::Loops& loops,
                     const allreduce::Settings& settings, std::size_t most)
    : transport_(transport),
      numbers_(transport, loops, settings.topology, most_contestants),
      communicator_(std::make_unique<allreduce::BucketCommunicator>(transport, loops, settings)) {
  const allreduce::Bytes room = transport.room(most * sizeof(float));
  room_ = {reinterpret_cast<float*>(room.data()), most};
}

void Reduction::add_bucket(std::size_t elements) {
  std::size_t used = 0;
  for (const std::span<float>& bucket : buckets_) {
    used += bucket.size();
  }
  check(used + elements <= room_.size(), "a benchmark's buckets are larger than its buffer");
  buckets_.push_back(room_.subspan(used, elements));
}

void Reduction::remove_buckets() {
  first_ += buckets_.size();
  buckets_.clear();
}

void Reduction::reduce_all(float factor) {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    communicator_->all_reduce(first_ + i, {&buckets_[i], 1}, factor);
  }
}

void Reduction::reduce() { reduce_all(1 / static_cast<float>(transport_.ranks())); }

double Reduction::error() {
  std::size_t place = 0;
  for (const std::span<float>& bucket : buckets_) {
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      bucket[i] = whole_number(transport_.rank(), place + i);
    }
    place += bucket.size();
  }
  reduce_all(1);
  double worst = 0;
  place = 0;
  for (const std::span<float>& bucket : buckets_) {
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      double sum = 0;
      for (int rank = 0; rank < transport_.ranks(); ++rank) {
        sum += whole_number(rank, place + i);
      }
      const double difference = std::abs(sum - bucket[i]);
      worst = difference <= worst ? worst : difference;  // also if it is not a number
    }
    place += bucket.size();
  }
  for (const double of_rank : numbers_.gather({&worst, 1})) {
    worst = of_rank <= worst ? worst : of_rank;
  }
  return worst;
}

std::vector<Timing> Reduction::time(const Contest& contest) {
  const std::size_t count = contest.contestants.size();
  std::vector<std::vector<double>> samples(count);
  for (int round = -contest.warm_up; round < contest.rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      numbers_.meet();
      const Clock::time_point start = Clock::now();
      for (int time = 0; time < contest.in_a_row; ++time) {
        contest.contestants[i]();
      }
      const double mine =
          std::chrono::duration<double>(Clock::now() - start).count() / contest.in_a_row;
      const double slowest = std::ranges::max(numbers_.gather({&mine, 1}));
      if (round >= 0) {
        samples[i].push_back(slowest);
      }
    }
  }
  std::vector<Timing> timings;
  timings.reserve(count);
  for (std::vector<double>& of : samples) {
    timings.push_back(timing_of(std::move(of)));
  }
  return timings;
}

}  // namespace cnn::bench
