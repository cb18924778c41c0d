#include "bench/machine/simulated_backend.h"

#include <algorithm>
#include <fmt/format.h>

#include "bench/machine/assumed_kernels.h"
#include "bench/machine/machine_model.h"

namespace cnn::bench {
namespace {

Backend assumed_backend(const MachineModel& model, const Arithmetic& arithmetic) {
  Backend backend{.name = "cuda"};
  backend.description = fmt::format("{} as its profile describes it, none is used", model.name);
  backend.preferred_layout = [](DataType /*type*/) { return Layout::nhwc; };
  if (!arithmetic.note.empty()) {
    backend.notes.emplace_back(arithmetic.note);
  }
  add_assumed_kernels(backend.kernels);
  return backend;
}

std::string why_assumed(const MachineModel& model, bool has_kind) {
  const std::string_view reason = !model.cudnn ? "cuDNN does not describe this GPU here"
                                  : !has_kind  ? "this build has no cuDNN to ask"
                                               : "";
  return reason.empty() ? std::string()
                        : fmt::format(
                              "{}: its convolutions are taken to need no workspace and to take no "
                              "batch norm in (--fusion=bn); all else is as the CUDA backend has it",
                              reason);
}

std::size_t usable_memory(const Config& config, const MachineModel& model) {
  if (config.gpu.memory_fraction == 0) {
    return model.usable_memory_bytes;
  }
  const double part = config.gpu.memory_fraction * static_cast<double>(model.memory_bytes);
  return std::min(model.usable_memory_bytes, static_cast<std::size_t>(part));
}

}  // namespace

Backend simulated_backend(const Config& config, const BackendKind* kind) {
  const MachineModel model = find_machine(config.gpu.simulate.value());
  const Arithmetic arithmetic = arithmetic_of(config.precision.type, model.has_tf32());
  const double flops = model.flops(config.precision.type);
  const bool asks = kind != nullptr && kind->describe != nullptr && model.cudnn;
  Backend backend = asks ? kind->describe(config, model) : assumed_backend(model, arithmetic);
  if (!config.comm.simulate_ranks.empty()) {
    add_assumed_exchange(backend.kernels);
  }
  backend.compute = arithmetic.compute;
  backend.precision = arithmetic.products;
  backend.memory = {.device = usable_memory(config, model),
                    .host = model.host_memory_bytes,
                    .text = "usable memory of its profile"};
  backend.steps = step_options(config);
  backend.link = model.link;
  backend.described = {.machine = model.name,
                       .ceilings = {.flops_per_second = flops, .bytes_per_second = model.bandwidth},
                       .efficiency = model.efficiency,
                       .source = model.source,
                       .calibrated = model.calibration ? model.calibration->text : "",
                       .assumed = why_assumed(model, kind != nullptr && kind->describe != nullptr)};
  return backend;
}

}  // namespace cnn::bench
