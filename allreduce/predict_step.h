#pragma once

#include <vector>

namespace cnn::allreduce {

// A bucket of gradients in a training step. Seconds from the start of the step.
struct BucketTime {
  double ready = 0;    // its last gradient is there
  double seconds = 0;  // that its exchange takes
};

// A step without its exchange, and what is exchanged.
struct StepModel {
  double compute = 0;                    // seconds of the step alone
  double backward_end = 0;               // when the last gradient is there
  std::vector<BucketTime> buckets = {};  // exchanged one after another
  double pack = 0;                       // seconds to copy gradients into buckets and back
  double jitter = 0;                     // standard deviation of the step among ranks
  int ranks = 1;
};

struct StepTime {
  double seconds = 0;
  double communication = 0;  // of all buckets
  double exposed = 0;        // of it: what no computing hides, and packing
  double straggler = 0;      // until the slowest of the ranks is there
};

// When the last bucket is there after the last gradient, nothing hides it: the step is as much
// longer.
StepTime predict_step(const StepModel& model);

}  // namespace cnn::allreduce
