#pragma once

#include <vector>

namespace cnn::allreduce {

// The times of a gradient bucket in a training step, in seconds.
struct BucketTime {
  double ready = 0;    // when its last gradient is computed, from the start of the step
  double seconds = 0;  // the duration of its exchange
};

// A training step and its buckets. Times are in seconds.
struct StepModel {
  double compute = 0;                    // the duration of the step without exchange
  double backward_end = 0;               // when the last gradient is computed
  std::vector<BucketTime> buckets = {};  // in the order of their exchange
  double pack = 0;                       // to copy gradients into buckets and back
  double jitter = 0;                     // the standard deviation of the step time over ranks
  int ranks = 1;
};

struct StepTime {
  double seconds = 0;
  double communication = 0;  // of all buckets
  double exposed = 0;        // the part that computing does not hide, and packing
  double straggler = 0;      // the wait for the slowest rank
};

// Returns the predicted time: the step is longer by the exposed communication, the part of the
// exchange after the last gradient.
StepTime predict_step(const StepModel& model);

}  // namespace cnn::allreduce
