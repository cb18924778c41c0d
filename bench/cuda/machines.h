#pragma once

#include "bench/machine/machine_model.h"
#include "layers/cuda/cudnn/machine.h"

namespace cnn::bench {

// Returns what the libraries ask of a device that is only described. Throws Error where the profile
// does not have it, saying what is missing.
layers::cuda::Machine machine_of(const MachineModel& model);

}  // namespace cnn::bench
