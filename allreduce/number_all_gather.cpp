#include "allreduce/number_all_gather.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "runtime/error.h"

namespace cnn::allreduce {
namespace {

constexpr std::size_t words_each = 4;  // 16-bit words; floats add them to zeros exactly

}  // namespace

NumberAllGather::NumberAllGather(Transport& transport, const simd::Loops& loops,
                                 const Topology& topology, std::size_t most)
    : transport_(transport), most_(most) {
  const std::size_t count = words_each * most * topology.host_of.size();
  const Bytes memory = transport.allocate_shared(count * sizeof(float));
  words_ = {reinterpret_cast<float*>(memory.data()), count};
  engine_ = std::make_unique<Engine>(
      transport, loops, make_plan(find("doubling"), topology, transport.rank(), count, {}),
      std::span(&words_, 1));
}

std::span<const double> NumberAllGather::gather(std::span<const double> mine) {
  check(mine.size() <= most_, "ranks tell one another too many numbers at once");
  std::ranges::fill(words_, 0.0F);
  const auto rank = static_cast<std::size_t>(transport_.rank());
  float* to = &words_[words_each * most_ * rank];
  for (const double number : mine) {
    const auto bits = std::bit_cast<std::uint64_t>(number);
    for (std::size_t word = 0; word < words_each; ++word) {
      *to++ = static_cast<float>(bits >> (16 * word) & 0xffffU);
    }
  }
  engine_->run(1);
  all_.clear();
  for (std::size_t from = 0; from < words_.size(); from += words_each * most_) {
    for (std::size_t i = 0; i < mine.size(); ++i) {
      std::uint64_t bits = 0;
      for (std::size_t word = 0; word < words_each; ++word) {
        bits |= static_cast<std::uint64_t>(words_[from + words_each * i + word]) << (16 * word);
      }
      all_.push_back(std::bit_cast<double>(bits));
    }
  }
  return all_;
}

}  // namespace cnn::allreduce
