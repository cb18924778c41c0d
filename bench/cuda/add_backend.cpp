#include "bench/add_backend.h"

#include <algorithm>
#include <fmt/format.h>

#include "layers/cuda/kernels.h"
#include "layers/cuda/libraries.h"
#include "runtime/cuda/device.h"

namespace cnn::bench {
namespace {

using layers::cuda::Libraries;

constexpr int ordinal = 0;  // CUDA_VISIBLE_DEVICES decides which card that is

// What the libraries load when a kernel first runs, and the CUDA graph: no plan counts it.
constexpr std::size_t kept_back = std::size_t{768} << 20U;

struct Precision {
  DataType compute;
  std::string_view products;
  std::string_view note;  // what the user may not expect; empty if it is what was asked
};

Precision precision_of(const std::string& asked) {
  if (asked == "fp16") {
    return {DataType::f16, "f16", ""};
  }
  if (asked == "bf16") {
    return {DataType::bf16, "bf16", ""};
  }
  if (asked == "fp32_strict") {
    return {DataType::f32, "f32", ""};
  }
  return {DataType::f32, "tf32",
          "precision: f32 with products in TF32, as is cuDNN's default (operands rounded to 10 "
          "bits, sums in f32); --precision=fp32_strict forbids it"};
}

GpuInfo info_of(const cuda::DeviceFacts& facts) {
  return {.name = facts.name,
          .driver = cuda::driver_version(),
          .compute_capability = fmt::format("{}.{}", facts.major, facts.minor),
          .multiprocessors = facts.multiprocessors,
          .memory_bytes = static_cast<std::int64_t>(facts.memory_bytes),
          .clock_mhz = facts.clock_khz / 1000.0,
          .memory_clock_mhz = facts.memory_clock_khz / 1000.0};
}

std::shared_ptr<Libraries> libraries_for(const Config& config, cuda::CudaDevice& device) {
  const cuda::DeviceFacts& facts = device.facts();
  layers::cuda::Machine machine{.name = facts.name,
                                .device_json = layers::cuda::device_json(ordinal),
                                .capability = 10 * facts.major + facts.minor,
                                .multiprocessors = facts.multiprocessors,
                                .memory_bytes = facts.memory_bytes};
  const layers::cuda::LibraryOptions options{.deterministic = config.deterministic,
                                             .strict_f32 = config.precision == "fp32_strict",
                                             .tune = config.tune};
  std::optional<layers::cuda::PlanCache> cache;
  if (config.plan_cache) {
    cache.emplace(
        *config.plan_cache,
        layers::cuda::PlanCache::Owner{.device = facts.name, .cudnn_version = cudnnGetVersion()},
        config.tune);
  }
  return std::make_shared<Libraries>(std::move(machine), options, device, std::move(cache));
}

void describe(Backend& backend, const Config& config) {
  const GpuInfo& gpu = *backend.gpu;
  backend.description =
      fmt::format("{}, compute capability {}, {} multiprocessors, driver for CUDA {}", gpu.name,
                  gpu.compute_capability, gpu.multiprocessors, gpu.driver);
  backend.libraries.emplace_back("CUDA", cuda::runtime_version());
  for (const layers::cuda::LibraryVersion& library : layers::cuda::library_versions()) {
    backend.libraries.emplace_back(library.name, library.version);
  }
  if (const std::string_view note = precision_of(config.precision).note; !note.empty()) {
    backend.notes.emplace_back(note);
  }
  if (config.data_format == "NCHW") {
    backend.notes.emplace_back(
        "layout: images lie as nhwc in memory, which is what the device computes in; "
        "--data_format=NCHW is printed in the header only");
  }
}

std::size_t memory_for_us(const Config& config, const cuda::CudaDevice& device) {
  const std::size_t available = device.memory_bytes();
  const std::size_t ours = available - std::min(available, kept_back);
  if (config.gpu_memory_frac_for_testing == 0) {
    return ours;
  }
  const double part =
      config.gpu_memory_frac_for_testing * static_cast<double>(device.facts().memory_bytes);
  return std::min(ours, static_cast<std::size_t>(part));
}

Backend make(const Config& config) {
  Backend backend{.name = "cuda", .device_text = "/gpu:0"};
  const Precision precision = precision_of(config.precision);
  backend.compute = precision.compute;
  backend.precision = precision.products;
  auto device = std::make_unique<cuda::CudaDevice>(ordinal);
  backend.gpu = info_of(device->facts());
  describe(backend, config);  // before anything of cuDNN starts: it checks versions
  layers::cuda::add_kernels(backend.kernels, libraries_for(config, *device));
  backend.preferred_layout = layers::cuda::preferred_layout;
  backend.memory_limit = memory_for_us(config, *device);
  backend.memory_text =
      fmt::format("free memory of the device, less {} MiB for the libraries", kept_back >> 20U);
  backend.device = std::move(device);
  backend.matrix_side = 6144;
  backend.images = 256;
  backend.repeats = 10;
  return backend;
}

}  // namespace

void add_backend(std::vector<BackendKind>& kinds) {
  const cuda::DeviceCount found = cuda::count_devices();
  kinds.push_back({.device = "gpu",
                   .missing = found.devices > 0 ? "" : "no CUDA device: " + found.why_none,
                   .make = make});
}

}  // namespace cnn::bench
