#pragma once

#include <memory>

#include "runtime/device.h"
#include "runtime/kernel.h"

namespace cnn::tests {

// A table whose kernels take operands on the host: they bring them to the device, run `table`'s
// kernel there, with outputs and workspace full of ones in every bit (NaN), and bring outputs and
// changed inputs back. Operands at one host address share one place on the device. A kernel throws
// Error if it writes past the end of an operand or of its workspace. Both must outlive the result.
KernelTable on_device(const KernelTable& table, Device& device);

}  // namespace cnn::tests
