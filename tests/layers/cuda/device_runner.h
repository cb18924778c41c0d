#pragma once

#include <memory>

#include "runtime/device.h"
#include "runtime/kernel.h"

namespace cnn::tests {

// Returns a table whose kernels take operands on the host. Each kernel copies them to the device,
// runs `table`'s kernel there with outputs and workspace full of NaN, and copies outputs and
// changed inputs back. Operands with one host address share one address on the device. A kernel
// throws Error if it writes past the end of an operand or of its workspace. `table` and `device`
// must outlive the result.
KernelTable on_device(const KernelTable& table, Device& device);

}  // namespace cnn::tests
