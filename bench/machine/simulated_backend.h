#pragma once

#include "bench/flags/config.h"
#include "bench/machine/backend.h"

namespace cnn::bench {

// The backend for the machine that --simulate names or whose profile it gives: kernels as `kind`
// describes them, where there is such a kind and the profile has what its libraries ask for, else
// as add_assumed_kernels() takes them; memory, link and speed from the profile. kind: of GPUs, or
// null. Throws Error for a profile that is unknown or malformed, and for a precision that the
// machine lacks.
Backend simulated_backend(const Config& config, const BackendKind* kind);

}  // namespace cnn::bench
