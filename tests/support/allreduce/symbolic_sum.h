#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "allreduce/step_list.h"

namespace cnn::allreduce {

enum class SumId : std::uint32_t {};

// Represents sums of contributions as formulas with unique ids: equal formulas have equal ids.
// Addition is commutative, since exchanging the operands changes no bit of the result.
class SymbolicSums {
 public:
  explicit SymbolicSums(int ranks);

  SumId contribution(int rank) const { return SumId{static_cast<std::uint32_t>(rank)}; }
  SumId add(SumId a, SumId b);
  SumId add(std::span<const SumId> parts, bool pairwise);
  SumId finish(SumId sum);  // the effect of Sum::last
  bool finished(SumId sum) const { return of(sum).finished; }
  // Returns whether the sum contains each rank's contribution exactly once. It compares sums of
  // random 64-bit weights, one for each rank.
  bool complete(SumId sum) const;
  // Returns the finished sum of all ranks in this order, in each dimension of a grid.
  SumId expected(Order order, std::span<const int> dims);

 private:
  struct Formula {
    std::uint64_t weight;  // sum over all its contributions
    std::uint32_t contributions;
    bool finished;
  };
  const Formula& of(SumId sum) const { return formulas_[static_cast<std::uint32_t>(sum)]; }
  SumId made(std::uint64_t key, const Formula& formula);

  std::uint32_t ranks_;
  std::uint64_t all_ = 0;  // weight of the complete sum
  std::vector<Formula> formulas_;
  std::unordered_map<std::uint64_t, SumId> known_;  // formulas by their two operands
};

}  // namespace cnn::allreduce
