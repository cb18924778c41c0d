#pragma once

#include "bench/machine/backend.h"

namespace cnn::bench {

// Returns the kind for the processor, which every build and every machine has.
BackendKind cpu_backend();

// Returns whether this processor supports --precision=bf16.
bool cpu_computes_bf16();

}  // namespace cnn::bench
