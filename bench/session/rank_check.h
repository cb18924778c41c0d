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

// Implements --hash_file, --comm_check=majority, --check_finite_step and --comm_fault=what=flip in
// the steps of one rank.
class RankCheck {
 public:
  // is_first: this is the rank whose files are written. References must outlive it.
  RankCheck(const Config& config, const RankContext& context, bool is_first, StepRunner& runner);

  // Before a step; global_step: where the run will stand after it.
  void begin(std::int64_t global_step);
  // After a step that ended well.
  void end() { hashed_ = due_; }
  // Hashes of the latest step; null if it was not hashed, or failed.
  const TensorHashes* hashes() const { return hashed_ ? &*hashes_ : nullptr; }
  // Null if this rank hashes nothing.
  const TensorHashes* hashed_tensors() const { return hashes_ ? &*hashes_ : nullptr; }
  // Null if no step of this run is checked.
  const FiniteCheck* finite() const { return finite_ ? &*finite_ : nullptr; }
  // Lines that ranks must have alike for their bits to be equal: processor, threads, the step.
  std::string surroundings() const;

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

// Ends a run of --comm_check=majority.
class RanksDiffer : public Error {
 public:
  using Error::Error;
  int exit_code() const noexcept override { return 4; }
};

// One line on ranks whose hashes of a step differ: who computes differently from the majority, and
// in which tensor first; or that there is no majority. hosts: by rank.
std::string difference_text(std::int64_t global_step, const WrittenTensors& tensors,
                            std::span<const std::vector<TensorHash>> of_ranks,
                            std::span<const std::string> hosts);

}  // namespace cnn::bench
