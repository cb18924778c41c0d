#include "tests/support/allreduce/symbolic_sum.h"

#include <algorithm>
#include <random>

#include "runtime/error.h"

namespace cnn::allreduce {
namespace {

constexpr std::uint64_t finish_mark = 0xffffffffU;  // stands for a second operand

}  // namespace

SymbolicSums::SymbolicSums(int ranks) : ranks_(static_cast<std::uint32_t>(ranks)) {
  std::mt19937_64 random(0x5eed);
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    formulas_.push_back({random(), 1, false});
    all_ += formulas_.back().weight;
  }
}

SumId SymbolicSums::made(std::uint64_t key, const Formula& formula) {
  const auto [place, is_new] =
      known_.try_emplace(key, SumId{static_cast<std::uint32_t>(formulas_.size())});
  if (is_new) {
    formulas_.push_back(formula);
  }
  return place->second;
}

SumId SymbolicSums::add(SumId a, SumId b) {
  check(!finished(a) && !finished(b), "a sum that was finished is added to another");
  const auto [low, high] = std::minmax(a, b);
  return made(
      (std::uint64_t{static_cast<std::uint32_t>(high)} << 32U) | static_cast<std::uint32_t>(low),
      {of(a).weight + of(b).weight, of(a).contributions + of(b).contributions, false});
}

SumId SymbolicSums::add(std::span<const SumId> parts, bool pairwise) {
  if (parts.size() == 1) {
    return parts.front();
  }
  const std::size_t split = pairwise ? parts.size() / 2 : parts.size() - 1;
  return add(add(parts.first(split), pairwise), add(parts.subspan(split), pairwise));
}

SumId SymbolicSums::finish(SumId sum) {
  check(!finished(sum), "a sum is finished twice");
  return made((finish_mark << 32U) | static_cast<std::uint32_t>(sum),
              {of(sum).weight, of(sum).contributions, true});
}

bool SymbolicSums::complete(SumId sum) const {
  return of(sum).contributions == ranks_ && of(sum).weight == all_;
}

SumId SymbolicSums::expected(Order order, std::span<const int> dims) {
  std::vector<SumId> sums;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    sums.push_back(SumId{rank});
  }
  for (const int size : dims) {
    const auto group = static_cast<std::size_t>(size);
    std::vector<SumId> next;
    for (std::size_t first = 0; first < sums.size(); first += group) {
      next.push_back(add(std::span(sums).subspan(first, group), order == Order::tree));
    }
    sums = next;
  }
  check(sums.size() == 1, "the dimensions claimed do not hold all ranks");
  return ranks_ == 1 ? sums.front() : finish(sums.front());
}

}  // namespace cnn::allreduce
