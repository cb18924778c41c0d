#pragma once

#include "bench/machine/profile.h"
#include "layers/cuda/library/machine.h"

namespace cnn::bench {

// Returns what the libraries ask of a device that is only described. Throws Error where the profile
// does not have it, saying what is missing.
layers::cuda::Machine machine_of(const Profile& profile);

}  // namespace cnn::bench
