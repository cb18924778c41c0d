#include "bench/cuda/speeds.h"

#include <algorithm>
#include <string>

#include "bench/machine/device_speeds.h"

namespace cnn::bench {
namespace {

// Multiply-adds per cycle of one multiprocessor.
struct Rates {
  int capability;  // minimum capability, up to the next row
  double f32, tf32, half;
};
constexpr Rates rates[]{{.capability = 60, .f32 = 64, .tf32 = 0, .half = 128},
                        {.capability = 70, .f32 = 64, .tf32 = 0, .half = 512},
                        {.capability = 80, .f32 = 64, .tf32 = 512, .half = 1024},
                        {.capability = 86, .f32 = 128, .tf32 = 128, .half = 256},
                        {.capability = 89, .f32 = 128, .tf32 = 256, .half = 512},
                        {.capability = 90, .f32 = 128, .tf32 = 1024, .half = 2048},
                        {.capability = 100, .f32 = 128, .tf32 = 2048, .half = 4096},
                        {.capability = 120, .f32 = 128, .tf32 = 256, .half = 512}};

bool has_word(std::string_view text, std::string_view word) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" -"), text.size());
    if (text.substr(0, end) == word) {
      return true;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

}  // namespace

std::optional<MachineModel> machine_for(std::string_view device_name,
                                        std::span<const MachineModel> machines) {
  const auto found = std::ranges::find_if(machines, [&](const MachineModel& model) {
    return has_word(device_name, std::string_view(model.name).substr(0, model.name.find('-')));
  });
  return found == machines.end() ? std::nullopt : std::optional(*found);
}

double peak_flops(const cuda::DeviceFacts& facts, std::string_view products) {
  const int capability = 10 * facts.major + facts.minor;
  Rates best = rates[0];
  for (const Rates& row : rates) {
    best = row.capability <= capability ? row : best;
  }
  const double tf32 = best.tf32 > 0 ? best.tf32 : best.f32;
  const double per_cycle = products == "f32" ? best.f32 : products == "tf32" ? tf32 : best.half;
  return 2 * per_cycle * facts.multiprocessors * facts.clock_khz * 1e3;
}

Ceilings expected_ceilings(cuda::CudaDevice& device, Precision precision) {
  constexpr double usual_part = 0.7;  // fraction of the peak for large products
  // Assumed f32 operations per byte, if the memory speed is unknown.
  constexpr double flops_for_each_byte = 50;
  const std::optional<MachineModel> model = machine_for(device.facts().name, known_machines());
  const Arithmetic arithmetic = arithmetic_of(precision, /*has_tf32=*/true);
  Ceilings ceilings;
  ceilings.flops_per_second = usual_part * peak_flops(device.facts(), arithmetic.products);
  ceilings.bytes_per_second = peak_flops(device.facts(), "f32") / flops_for_each_byte;
  if (model) {
    // A part of a card, or its PCIe variant, has the name of the model and fewer multiprocessors.
    if (model->has_tf32() || arithmetic.products == "f32") {
      ceilings.flops_per_second =
          std::min(ceilings.flops_per_second, model->efficiency.products * model->flops(precision));
    }
    ceilings.bytes_per_second = model->efficiency.bytes * model->bandwidth;
  }
  ceilings.bytes_per_second =
      measure_memory_speed(device, device.facts().cache_bytes).value_or(ceilings.bytes_per_second);
  return ceilings;
}

}  // namespace cnn::bench
