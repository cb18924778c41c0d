#include "bench/machine/simulated_backend.h"

#include <algorithm>
#include <fmt/format.h>

#include "bench/machine/assumed_kernels.h"
#include "bench/machine/profile.h"

namespace cnn::bench {
namespace {

Backend assumed_backend(const Profile& profile, const Arithmetic& arithmetic) {
  Backend backend{.name = "cuda"};
  backend.description = fmt::format("{} as its profile describes it, none is used", profile.name);
  backend.preferred_layout = [](DataType /*type*/) { return Layout::nhwc; };
  if (!arithmetic.note.empty()) {
    backend.notes.emplace_back(arithmetic.note);
  }
  add_assumed_kernels(backend.kernels);
  return backend;
}

std::string why_assumed(const Profile& profile, bool has_kind) {
  const std::string_view reason = !profile.cudnn ? "cuDNN does not describe this GPU here"
                                  : !has_kind    ? "this build has no cuDNN to ask"
                                                 : "";
  return reason.empty() ? std::string()
                        : fmt::format(
                              "{}: its convolutions are taken to need no workspace and to take no "
                              "batch norm in (--fusion=bn); all else is as the CUDA backend has it",
                              reason);
}

std::size_t usable_memory(const Config& config, const Profile& profile) {
  if (config.gpu.memory_fraction == 0) {
    return profile.usable_memory_bytes;
  }
  const double part = config.gpu.memory_fraction * static_cast<double>(profile.memory_bytes);
  return std::min(profile.usable_memory_bytes, static_cast<std::size_t>(part));
}

}  // namespace

Backend simulated_backend(const Config& config, const BackendKind* kind) {
  const Profile profile = find_profile(config.gpu.simulate.value());
  const Arithmetic arithmetic = arithmetic_of(config.precision.type, profile.has_tf32());
  const double flops = profile.flops(config.precision.type);
  const bool asks = kind != nullptr && kind->describe != nullptr && profile.cudnn;
  Backend backend = asks ? kind->describe(config, profile) : assumed_backend(profile, arithmetic);
  if (!config.comm.simulate_ranks.empty()) {
    add_assumed_exchange(backend.kernels);
  }
  backend.compute = arithmetic.compute;
  backend.precision = arithmetic.products;
  backend.memory = {.device = usable_memory(config, profile),
                    .host = profile.host_memory_bytes,
                    .text = "usable memory of its profile"};
  backend.steps = step_options(config);
  backend.link = profile.link;
  backend.described = {
      .machine = profile.name,
      .ceilings = {.flops_per_second = flops, .bytes_per_second = profile.bandwidth},
      .efficiency = profile.efficiency,
      .source = profile.source,
      .calibrated = profile.calibration ? profile.calibration->text : "",
      .assumed = why_assumed(profile, kind != nullptr && kind->describe != nullptr)};
  return backend;
}

}  // namespace cnn::bench
