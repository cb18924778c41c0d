#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/hashed_run.h"

namespace cnn::compare {

// How many tensors of a step are equal in two runs.
struct BitCounts {
  std::size_t compared = 0, different = 0;
  std::map<std::string, std::size_t> different_by_op;
};

struct BitComparison {
  std::size_t steps = 0;               // that both files have
  std::size_t different_steps = 0;     // of them
  std::size_t only_a = 0, only_b = 0;  // tensors of the first common step that the other run lacks
  // The first step that differs, or the first common step where none does.
  std::int64_t step = 0;
  BitCounts counts;
  // The first tensor that differs, in the order in which the first run computed it; in two runs, or
  // in two computations within one of them.
  struct First {
    HashedTensor tensor;
    std::uint64_t a = 0, b = 0;
    std::string repeated_in;  // the path of the file whose own computations differ, or empty
  };
  std::optional<First> first;      // nothing if all is equal
  std::vector<std::string> notes;  // whole sentences on what else the runs differ in
};

// Throws Error if the runs cannot be compared: other networks, batches, types or steps.
BitComparison compare_bits(const HashedRun& a, const HashedRun& b);

std::string bits_text(const HashedRun& a, const HashedRun& b, const BitComparison& comparison);

// 0 if all is equal, else 1.
int exit_code_of(const BitComparison& comparison);

}  // namespace cnn::compare
