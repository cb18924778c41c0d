#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

#include "bench/flags/config.h"

namespace cnn::bench {

enum class Mode : std::uint8_t { training, evaluation, training_and_evaluation, forward_only };

Mode mode_of(const Config& config);
std::string_view mode_name(Mode mode);  // as the header prints it

// Examples per device and step: the flag if more than 0, else the model's own size.
std::int64_t per_device_batch(int flag, std::int64_t model_default);

struct Length {
  std::int64_t batches = 0;
  double epochs = 0;  // batches * global batch / examples
};

// Length of a run from its two flags, of which at most one may be set (0 counts as unset); 100
// batches if none is. An epoch count is rounded up to whole batches:
//   batches = int(epochs * examples + global_batch - 1) div global_batch.
// Throws Error if both are set, or if the epochs make no whole number of batches below 2^62.
Length run_length(LengthFlags flags, std::int64_t global_batch, std::int64_t examples);

// Length of an evaluation: by the num_eval_* pair if one of it is set, else by the training pair;
// `examples` is the size of the validation set, `batch` that of an evaluation step.
Length eval_length(const Config& config, std::int64_t batch, std::int64_t examples);

// Untimed steps: the flag, or max(10, 5 * threshold^2) where an unset threshold counts as 1.
std::int64_t warm_up_batches(std::optional<int> flag, std::optional<int> autotune_threshold);

// Batches that sit in staging buffers between the input and the step: 0 when batches of real data
// are prefetched to a GPU, else 1.
int staging_operations(const Config& config);

// The input stage makes `group` batches at a time; the warm-up grows until the timed steps begin on
// a whole group: the least w' >= w with (w' + staging - 1) mod group = 0.
std::int64_t round_up_warm_up(std::int64_t warm_up, std::int64_t group, int staging);

// When training pauses for an evaluation.
struct EvalSchedule {
  std::int64_t every = 0;       // in steps; 0 = not regularly
  std::set<std::int64_t> at{};  // numbers of finished timed steps

  // After `step` timed steps of `last`. The final evaluation is not part of this.
  bool due(std::int64_t step, std::int64_t last) const;
};

// From the eval_during_training_* flags; epochs become steps by rounding up as in run_length.
// `length` is that of the training.
EvalSchedule eval_schedule(const Config& config, const Length& length, std::int64_t global_batch,
                           std::int64_t examples);

}  // namespace cnn::bench
