#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "allreduce/step_list.h"

namespace cnn::allreduce {

enum class SumId : std::uint32_t {};

// Sums of contributions as formulas: equal formulas have equal ids. The two operands of an addition
// may change places, which changes no bit of it.
class SymbolicSums {
 public:
  explicit SymbolicSums(int ranks);

  SumId contribution(int rank) const { return SumId{static_cast<std::uint32_t>(rank)}; }
  SumId add(SumId a, SumId b);
  SumId add(std::span<const SumId> parts, bool pairwise);
  SumId finish(SumId sum);  // what Sum::last does
  bool finished(SumId sum) const { return of(sum).finished; }
  // Each rank's contribution exactly once. (By sums of random 64-bit numbers, one for each rank.)
  bool complete(SumId sum) const;
  // The finished sum of all ranks in this order, in each dimension of a grid.
  SumId expected(Order order, std::span<const int> dims);

 private:
  struct Formula {
    std::uint64_t weight;  // of all contributions in it
    std::uint32_t contributions;
    bool finished;
  };
  const Formula& of(SumId sum) const { return formulas_[static_cast<std::uint32_t>(sum)]; }
  SumId made(std::uint64_t key, const Formula& formula);

  std::uint32_t ranks_;
  std::uint64_t all_ = 0;  // weight of everyone's contribution once
  std::vector<Formula> formulas_;
  std::unordered_map<std::uint64_t, SumId> known_;  // by both operands
};

}  // namespace cnn::allreduce
