#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layers/cuda/library/machine.h"

namespace cnn::bench {

// The files of scripts/machines, as they were when the program was built.
std::vector<std::string_view> machine_texts();

// Reads one of these files; throws Error that says what is missing.
layers::cuda::Machine read_machine(std::string_view json);

// The devices that runs can be predicted for, by name.
std::vector<layers::cuda::Machine> known_machines();

// "h200", in any case. Throws Error that lists the names if there is no such machine.
layers::cuda::Machine find_machine(std::string_view name);

// The machine that such a device is, by its own name ("NVIDIA H200"), or null.
const layers::cuda::Machine* machine_like(std::span<const layers::cuda::Machine> machines,
                                          std::string_view device_name);

}  // namespace cnn::bench
