#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/flags/config.h"
#include "bench/machine/backend.h"
#include "runtime/tensor.h"

namespace cnn::bench {

// A published speed that determines a profile's efficiency, for reports.
struct Calibration {
  std::string text;  // "resnet50, fp32, batch 150: 255 images/sec"
};

// A machine with a GPU as described by a file of scripts/machines: enough to plan a step and to
// predict its time. Rates in bytes or floating-point operations per second.
struct MachineModel {
  std::string name;    // "P100-PCIe3"
  std::string source;  // origin of the figures
  // Rates of a matrix product, a multiply-add counted as two; 0: the machine does not support the
  // type. f32: without tensor cores.
  double flops_f16 = 0, flops_bf16 = 0, flops_tf32 = 0, flops_f32 = 0;
  double bandwidth = 0;  // of a copy, reads plus writes
  Efficiency efficiency;
  std::optional<Calibration> calibration;
  std::size_t memory_bytes = 0, usable_memory_bytes = 0;  // of the device
  std::size_t host_memory_bytes = 0;                      // that may be pinned
  Link link;
  // cuDNN's serialised description of the device; nothing: the CUDA backend does not support it.
  std::optional<std::string> cudnn;

  // Throws Error if the machine does not support that precision.
  double flops(Precision precision) const;
  bool has_tf32() const { return flops_tf32 > 0; }
};

// Returns the contents of scripts/machines at the time of the build.
std::vector<std::string_view> machine_texts();

// Parses such a file; where: its name, for errors. Throws Error that names the missing or wrong
// value.
MachineModel read_machine(std::string_view json, std::string_view where);

// Returns the machines of these files, sorted by name.
std::vector<MachineModel> known_machines();

// Finds a machine by its name in any case ("h200"), or by the path of such a file. Throws Error
// with the known names if there is neither.
MachineModel find_machine(const std::string& name_or_file);

// The types that --precision selects: of activations, and of products ("tf32").
struct Arithmetic {
  DataType compute = DataType::f32;
  std::string_view products;
  std::string_view note = {};  // a difference from the request that may surprise the user; or empty
};
Arithmetic arithmetic_of(Precision request, bool has_tf32);

}  // namespace cnn::bench
