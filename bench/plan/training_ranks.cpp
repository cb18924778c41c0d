#include "bench/plan/training_ranks.h"

#include "bench/plan/job.h"

namespace cnn::bench {

int training_ranks(const Job& job) {
  const bool copies = job.trains() && job.config->variable_update == VariableUpdate::independent;
  return copies ? 1 : job.ranks;
}

std::int64_t examples_per_step(const Job& job) {
  return job.batch.per_device * training_ranks(job);
}

}  // namespace cnn::bench
