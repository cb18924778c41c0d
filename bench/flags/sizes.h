#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

#include "bench/flags/config.h"

namespace cnn::bench {

enum class Mode : std::uint8_t { training, evaluation, training_and_evaluation, forward_only };

Mode mode_of(const Config& config);
std::string_view mode_name(Mode mode);  // as printed in the header

// Returns examples per device and step: the flag if it is positive, else the model's default.
std::int64_t per_device_batch(int flag, std::int64_t model_default);

struct Length {
  std::int64_t batches = 0;
  double epochs = 0;  // batches * global batch / examples
};

// Returns the length of a run from its two flags, at most one of which may be set (0 counts as
// unset); 100 batches if none is. Epochs are rounded up to whole batches:
//   batches = int(epochs * examples + global_batch - 1) div global_batch.
// Throws Error if both are set, or if the number of batches reaches 2^62.
Length run_length(LengthFlags flags, std::int64_t global_batch, std::int64_t examples);

// Returns the length of an evaluation from the num_eval_* flags if one is set, else from the
// training's flags; `examples` is the size of the validation set, `batch` that of an evaluation
// step.
Length eval_length(const Config& config, std::int64_t batch, std::int64_t examples);

// Returns untimed steps: the flag, or max(10, 5 * threshold^2), where an unset threshold counts as
// 1.
std::int64_t warm_up_batches(std::optional<int> flag, std::optional<int> autotune_threshold);

// Returns the batches in staging buffers between the input and the step: 0 if batches of real data
// are prefetched to a GPU, else 1.
int staging_operations(const Config& config);

// Returns the warm-up extended so that the timed steps begin on a whole group, since the input
// stage makes `group` batches at a time: the least w' >= w with (w' + staging - 1) mod group = 0.
std::int64_t round_up_warm_up(std::int64_t warm_up, std::int64_t group, int staging);

// The times at which training pauses for an evaluation.
struct EvalSchedule {
  std::int64_t every = 0;       // in steps; 0 = never
  std::set<std::int64_t> at{};  // numbers of finished timed steps
  // Multiples of an interval of at least one step. A long run has more of them than memory.
  struct {
    double interval = 0;  // in epochs
    double count = 0;     // of the multiples before the end of the run
    std::int64_t global_batch = 1, examples = 1;
  } multiples{};

  // Returns whether an evaluation is due after `step` of `last` timed steps, without the final one.
  bool due(std::int64_t step, std::int64_t last) const;

 private:
  bool is_multiple(std::int64_t step) const;
};

// Returns the schedule of the eval_during_training_* flags; epochs are rounded up to steps as in
// run_length. `length`: of the training.
EvalSchedule eval_schedule(const Config& config, const Length& length, std::int64_t global_batch,
                           std::int64_t examples);

}  // namespace cnn::bench
