#pragma once

#include "bench/machine/backend.h"

namespace cnn::bench {

// The processor: every build and every machine has it.
BackendKind cpu_backend();

// Whether --precision=bf16 is possible on this processor.
bool cpu_computes_bf16();

}  // namespace cnn::bench
