#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/hashed_run.h"

namespace cnn::compare {

// Counts of equal and different tensors of a step in two runs.
struct BitCounts {
  std::size_t compared = 0, different = 0;
  std::map<std::string, std::size_t> different_by_op;
};

struct BitComparison {
  std::size_t steps = 0;               // in both files
  std::size_t different_steps = 0;     // of them
  std::size_t only_a = 0, only_b = 0;  // tensors of the first common step that the other run lacks
  // The first step that differs, else the first common step.
  std::int64_t step = 0;
  BitCounts counts;
  // The first differing tensor in the order of the first run's computation; between two runs, or
  // between two computations within one run.
  struct First {
    HashedTensor tensor;
    std::uint64_t a = 0, b = 0;
    std::string repeated_in;  // path of the file whose own computations differ, or empty
  };
  std::optional<First> first;      // nothing if all are equal
  std::vector<std::string> notes;  // sentences on other differences of the runs
};

// Throws Error if the runs are not comparable: different networks, batches, types or steps.
BitComparison compare_bits(const HashedRun& a, const HashedRun& b);

std::string bits_text(const HashedRun& a, const HashedRun& b, const BitComparison& comparison);

// Returns 0 if all tensors are equal, else 1.
int exit_code_of(const BitComparison& comparison);

}  // namespace cnn::compare
