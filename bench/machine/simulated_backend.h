#pragma once

#include "bench/flags/config.h"
#include "bench/machine/backend.h"

namespace cnn::bench {

// Returns the backend of the machine or profile that --simulate names. Kernels: as `kind` describes
// them, if it exists and the profile has the properties that its libraries query, else as
// add_assumed_kernels() describes them. Memory, link and speed come from the profile. kind: of
// GPUs, or null. Throws Error if the profile is unknown or malformed, or the machine does not
// support the precision.
Backend simulated_backend(const Config& config, const BackendKind* kind);

}  // namespace cnn::bench
