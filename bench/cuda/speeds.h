#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "bench/machine/machine_model.h"
#include "runtime/cuda/device.h"

namespace cnn::bench {

// Returns the machine profile for a device: the one whose name up to its hyphen is a word of the
// device's name, such as "V100-NVLink2" for "Tesla V100-SXM2-16GB". Returns nothing if there is
// none.
std::optional<MachineModel> machine_for(std::string_view device_name,
                                        std::span<const MachineModel> machines);

// Returns the peak floating-point operations per second of the device at its maximum clock, for
// products of this type ("f16", "bf16", "tf32", "f32") with sums in f32; a multiply-add counts as
// two.
double peak_flops(const cuda::DeviceFacts& facts, std::string_view products);

// Returns the rates that kernels are expected to reach on the device, before any has run:
// arithmetic from the machine's profile, else a fraction of the peak; memory bandwidth from
// measured copies, else from the profile. Takes some milliseconds.
Ceilings expected_ceilings(cuda::CudaDevice& device, Precision precision);

}  // namespace cnn::bench
