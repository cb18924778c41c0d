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

// A published speed that a profile's efficiency was chosen to meet, for reports.
struct Calibration {
  std::string text;  // "resnet50, fp32, batch 150: 255 images/sec"
};

// A machine with a GPU as a file of scripts/machines describes it: enough to plan a step for it and
// to say how long it takes. Rates in bytes or floating-point operations a second.
struct MachineModel {
  std::string name;    // "P100-PCIe3"
  std::string source;  // where the figures come from
  // Of a matrix product, a multiply-add counted as two; 0: the machine does not compute in it. f32:
  // without tensor cores.
  double flops_f16 = 0, flops_bf16 = 0, flops_tf32 = 0, flops_f32 = 0;
  double bandwidth = 0;  // of a copy, read and write counted
  Efficiency efficiency;
  std::optional<Calibration> calibration;
  std::size_t memory_bytes = 0, usable_memory_bytes = 0;  // of the device
  std::size_t host_memory_bytes = 0;                      // that may be pinned
  Link link;
  // As cuDNN describes the device to itself; nothing: the CUDA backend does not run on it.
  std::optional<std::string> cudnn;

  // Throws Error where the machine does not compute in that precision.
  double flops(Precision precision) const;
  bool has_tf32() const { return flops_tf32 > 0; }
};

// The files of scripts/machines, as they were when the program was built.
std::vector<std::string_view> machine_texts();

// Reads one of these files; where: its name, for errors. Throws Error that says what is missing or
// wrong.
MachineModel read_machine(std::string_view json, std::string_view where);

// Returns the machines of these files, in the order of their names.
std::vector<MachineModel> known_machines();

// "h200" in any case, or the path of such a file. Throws Error that lists the names if there is
// neither.
MachineModel find_machine(const std::string& name_or_file);

// The types that the flags' precision means: of activations, and of products ("tf32").
struct Arithmetic {
  DataType compute = DataType::f32;
  std::string_view products;
  std::string_view note = {};  // what the user may not expect; empty if it is what was asked
};
Arithmetic arithmetic_of(Precision asked, bool has_tf32);

}  // namespace cnn::bench
