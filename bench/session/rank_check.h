#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/session/bit_flip.h"
#include "bench/session/finite_check.h"
#include "bench/session/tensor_hashes.h"
#include "runtime/error.h"

namespace cnn::bench {

struct RankContext;
class StepRunner;

// Implements --hash_file, --comm_check=majority, --check_finite_step and --comm_fault=what=flip for
// one rank.
class RankCheck {
 public:
  // is_first: whether this rank writes the files. References must outlive it.
  RankCheck(const Config& config, const RankContext& context, bool is_first, StepRunner& runner);

  // Call before a step; global_step: its number after completion.
  void begin(std::int64_t global_step);
  // Call after a successful step.
  void end() { hashed_ = due_; }
  // Returns hashes of the latest step; null if it was not hashed, or failed.
  const TensorHashes* hashes() const { return hashed_ ? &*hashes_ : nullptr; }
  // Returns the hasher; null if this rank hashes nothing.
  const TensorHashes* hashed_tensors() const { return hashes_ ? &*hashes_ : nullptr; }
  // Returns the check; null if this run checks no step.
  const FiniteCheck* finite() const { return finite_ ? &*finite_ : nullptr; }
  // Returns lines that must agree between ranks for equal bits: processor, threads, the step.
  std::string environment_text() const;

 private:
  const RankContext& context_;
  std::int64_t every_;
  bool due_ = false, hashed_ = false;
  std::optional<BitFlip> flip_;
  std::optional<TensorHashes> hashes_;
  std::optional<std::int64_t> finite_step_;
  std::optional<FiniteCheck> finite_;
};

// Throws Error if --comm_fault names a rank that the run does not have.
void check_fault_rank(const Config& config, int ranks);

// The error that ends a run of --comm_check=majority.
class RanksDiffer : public Error {
 public:
  using Error::Error;
  int exit_code() const noexcept override { return 4; }
};

// Returns one line on ranks whose hashes of a step differ: the ranks that deviate from the majority
// and their first differing tensor; or that there is no majority. hosts: by rank.
std::string difference_text(std::int64_t global_step, const WrittenTensors& tensors,
                            std::span<const std::vector<TensorHash>> of_ranks,
                            std::span<const std::string> hosts);

}  // namespace cnn::bench
