#pragma once

#include "bench/machine/machine_model.h"
#include "layers/cuda/cudnn/machine.h"

namespace cnn::bench {

// Returns the properties that cuDNN queries of a device, for a GPU that is known only by its
// profile. Throws Error with the missing property if the profile lacks one.
layers::cuda::Machine machine_of(const MachineModel& model);

}  // namespace cnn::bench
