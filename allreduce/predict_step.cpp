#include "allreduce/predict_step.h"

#include <algorithm>
#include <cmath>

namespace cnn::allreduce {

StepTime predict_step(const StepModel& model) {
  StepTime time;
  double end = 0;
  for (const BucketTime& bucket : model.buckets) {
    end = std::max(end, bucket.ready) + bucket.seconds;
    time.communication += bucket.seconds;
  }
  time.exposed = std::max(0.0, end - model.backward_end) + model.pack;
  // The approximate expected maximum of so many normal values.
  time.straggler = model.jitter * std::sqrt(2 * std::log(std::max(model.ranks, 1)));
  time.seconds = model.compute + time.exposed + time.straggler;
  return time;
}

}  // namespace cnn::allreduce
