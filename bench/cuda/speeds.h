#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "bench/machine/machine_model.h"
#include "runtime/cuda/device.h"

namespace cnn::bench {

// The profile of the machine with such a device: that whose name, up to a hyphen, is a word of the
// device's: "V100-NVLink2" for "Tesla V100-SXM2-16GB". Nothing: there is none.
std::optional<MachineModel> machine_for(std::string_view device_name,
                                        std::span<const MachineModel> machines);

// Returns what multiprocessors of this kind compute in a second at their highest clock, in these
// products
// ("f16", "bf16", "tf32", "f32") with sums in f32; a multiply-add counts as two.
double peak_flops(const cuda::DeviceFacts& facts, std::string_view products);

// Returns what kernels may be expected to reach on the device, before any has run: arithmetic as
// its machine's profile says, else a part of its peak; memory as copies reach it, else as the
// profile says. Takes some milliseconds.
Ceilings expected_ceilings(cuda::CudaDevice& device, Precision precision);

}  // namespace cnn::bench
