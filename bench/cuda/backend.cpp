#include "bench/cuda/backend.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "bench/cuda/machines.h"
#include "bench/cuda/nvml.h"
#include "bench/cuda/speeds.h"
#include "bench/flags/gpu_indices.h"
#include "bench/machine/device_speeds.h"
#include "bench/machine/plan_cache_file.h"
#include "bench/version/build_info.h"
#include "layers/cpu/isa.h"
#include "layers/cuda/cudnn/kernels.h"
#include "layers/cuda/cudnn/libraries.h"
#include "layers/cuda/cudnn/node_timer.h"
#include "layers/cuda/host_flag.h"
#include "layers/stream_exchange.h"
#include "runtime/cpu/memory.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/support.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

using layers::cuda::Libraries;

// Reserves memory that libraries load when a kernel first runs, and for the CUDA graph: no plan
// counts these bytes.
constexpr std::size_t kept_back = std::size_t{768} << 20U;

Arithmetic arithmetic_of(const Config& config) {
  return bench::arithmetic_of(config.precision.type, /*has_tf32=*/true);
}

GpuInfo info_of(const cuda::DeviceFacts& facts) {
  return {.name = facts.name,
          .driver = cuda::driver_version(),
          .compute_capability = fmt::format("{}.{}", facts.major, facts.minor),
          .multiprocessors = facts.multiprocessors,
          .memory_bytes = static_cast<std::int64_t>(facts.memory_bytes),
          .clock_mhz = facts.clock_khz / 1000.0,
          .memory_clock_mhz = facts.memory_clock_khz / 1000.0,
          .pci_bus_id = facts.pci_bus_id};
}

layers::cuda::LibraryOptions options_of(const Config& config) {
  return {.deterministic = config.gpu.deterministic,
          .strict_f32 = config.precision.type == Precision::fp32_strict,
          .tune = config.gpu.tune.value_or(true),
          .tune_seconds = config.gpu.tune_seconds,
          .build = std::string(build_commit().value_or(build_version()))};
}

// Returns the release of the driver, where NVML tells it, and the CUDA version that it takes.
std::string driver_text(const GpuInfo& gpu) {
  const std::string release = driver_release();
  return fmt::format("{}{}for CUDA {}", release, release.empty() ? "" : " ", gpu.driver);
}

std::optional<layers::cuda::PlanCache> cache_for(const Config& config, Backend& backend) {
  const bool tunes = config.gpu.tune.value_or(true);
  std::optional<std::string> file = config.gpu.plan_cache;
  if (!file && tunes) {
    file = default_plan_cache();
    if (!file) {
      backend.notes.push_back(no_plan_cache_note());
    }
  }
  if (!file) {
    return std::nullopt;
  }
  layers::cuda::PlanCache cache(*file,
                                {.device = backend.gpu->name,
                                 .driver = driver_text(*backend.gpu),
                                 .cudnn_version = cudnnGetVersion(),
                                 .cublaslt_version = cublasLtGetVersion()},
                                tunes);
  backend.notes.push_back(plan_cache_note(cache.file().string(), cache.size(), cache.foreign(),
                                          "devices, drivers or versions of cuDNN or cuBLASLt"));
  return cache;
}

std::shared_ptr<Libraries> libraries_for(const Config& config, cuda::CudaDevice& device,
                                         Backend& backend) {
  const cuda::DeviceFacts& facts = device.facts();
  layers::cuda::Machine machine{.name = facts.name,
                                .capability = 10 * facts.major + facts.minor,
                                .multiprocessors = facts.multiprocessors,
                                .memory_bytes = facts.memory_bytes};
  return std::make_shared<Libraries>(std::move(machine), options_of(config), device,
                                     cache_for(config, backend));
}

// Adds library versions, and notes on how their choices affect the numbers.
void add_choices(Backend& backend, const Config& config) {
  backend.libraries.emplace_back("CUDA", cuda::runtime_version());
  for (const layers::cuda::LibraryVersion& library : layers::cuda::library_versions()) {
    backend.libraries.emplace_back(library.name, library.version);
  }
  if (const std::string_view note = arithmetic_of(config).note; !note.empty()) {
    backend.notes.emplace_back(note);
  }
  if (config.report.data_format == DataFormat::nchw) {
    backend.notes.emplace_back(
        "layout: images lie as nhwc in memory, which is what the device computes in; "
        "--data_format=NCHW is printed in the header only");
  }
  if (!config.cpu.winograd) {
    backend.notes.emplace_back(
        "--nowinograd_nonfused has no effect on a GPU: cuDNN proposes the algorithm of each "
        "convolution");
  }
}

// Returns the usable bytes out of `available` on a device with `all` bytes.
std::size_t memory_for_us(const Config& config, std::size_t available, std::size_t all) {
  const std::size_t ours = available - std::min(available, kept_back);
  if (config.gpu.memory_fraction == 0) {
    return ours;
  }
  const double part = config.gpu.memory_fraction * static_cast<double>(all);
  return std::min(ours, static_cast<std::size_t>(part));
}

std::string memory_text() {
  return fmt::format("free memory of the device, less {} MiB for the libraries", kept_back >> 20U);
}

// Makes the parts of a backend that do not need a device.
Backend start(const Config& config) {
  Backend backend{.name = "cuda"};
  const Arithmetic arithmetic = arithmetic_of(config);
  backend.compute = arithmetic.compute;
  backend.precision = arithmetic.products;
  backend.preferred_layout = layers::cuda::preferred_layout;
  return backend;
}

void add_telemetry(Backend& backend, const cuda::DeviceFacts& facts) {
  try {
    backend.telemetry = open_nvml({.pci_bus_id = facts.pci_bus_id, .uuid = facts.uuid});
  } catch (const Error& error) {
    backend.notes.push_back(fmt::format("telemetry: off, {}", error.what()));
  }
}

std::shared_ptr<void> pin(std::span<std::byte> memory) {
  cuda::pin(memory);
  return {memory.data(), [](void* pinned) { cuda::unpin(pinned); }};
}

constexpr DeviceExchange device_exchange{
    .add = layers::add_stream_exchange,
    .native = [](Stream& stream) -> void* { return cuda::native(stream); },
    .on_poll =
        [](Device& device, std::function<void(bool waiting)> poll) {
          dynamic_cast<cuda::CudaDevice&>(device).on_poll(std::move(poll));
        },
    .pin = pin,
    .wait_for_flag = layers::cuda::wait_for_flag};

// Adds the timing of nodes on the calling thread's device.
void add_node_seconds(KernelTuning& tuning, const std::shared_ptr<Libraries>& libraries,
                      Device& device) {
  tuning.node_seconds = [libraries, &device, timer = std::shared_ptr<layers::cuda::NodeTimer>()](
                            const KernelTable& kernels, const std::string& key, const Op& op,
                            const Signature& signature) mutable {
    return libraries->node_seconds(key, [&] {
      if (timer == nullptr) {
        timer = std::make_shared<layers::cuda::NodeTimer>(device);
      }
      return timer->seconds_of(kernels, op, signature);
    });
  };
  tuning.forget_node_seconds = [libraries] { libraries->forget_node_seconds(); };
}

// Returns notes about tuning since the last call.
std::vector<std::string> tuning_notes(const Libraries::Counts& now, Libraries::Counts& told) {
  std::vector<std::string> notes;
  if (now.tuned > told.tuned || now.untimed > told.untimed || now.timed_nodes > told.timed_nodes) {
    notes.push_back(
        fmt::format("tuning: engines for {} graphs{} were timed in {:.1f} s{}", now.tuned,
                    now.timed_nodes == 0
                        ? std::string()
                        : fmt::format(" and {} nodes of fused and plain layers", now.timed_nodes),
                    now.tuning_seconds,
                    now.untimed == 0 ? std::string()
                                     : fmt::format("; {} more were not within --tune_seconds and "
                                                   "take cuDNN's first proposals: run again to "
                                                   "time them too",
                                                   now.untimed)));
  }
  told = now;
  return notes;
}

KernelTuning tuning_of(const std::shared_ptr<Libraries>& libraries) {
  KernelTuning tuning;
  tuning.stop = [libraries] { libraries->stop_tuning(); };
  tuning.choices = [libraries] { return libraries->choices_text(); };
  tuning.adopt = [libraries](const std::string& choices) { libraries->adopt(choices); };
  tuning.take_notes = [libraries, told = Libraries::Counts()]() mutable {
    std::vector<std::string> notes = libraries->take_notes();
    std::ranges::move(tuning_notes(libraries->counts(), told), std::back_inserter(notes));
    return notes;
  };
  if (libraries->options().tune) {
    tuning.notice = fmt::format(
        "tuning: cuDNN's engines, and layers fused and plain, are timed where the plan cache does "
        "not know them, for {:g} s at most (--tune_seconds); --notune takes cuDNN's first "
        "proposals and fuses all it can",
        libraries->options().tune_seconds);
  }
  return tuning;
}

// Sets the speeds with which LMS plans the first steps. Ranks of a host may measure at the same
// time: they share the link then as in steps.
void add_speeds(const Config& config, cuda::CudaDevice& device, Backend& backend) {
  if (!config.lms.enabled) {
    return;
  }
  backend.link = measure_link(device);
  backend.expected = expected_ceilings(device, config.precision.type);
  constexpr double giga = 1e9, tera = 1e12;
  std::string link = "not measured, as too little memory is free";
  if (backend.link) {
    link = fmt::format("{:.1f} GB/s out, {:.1f} GB/s in{}", backend.link->out / giga,
                       backend.link->in / giga,
                       backend.link->both == 0
                           ? ", which do not slow each other down"
                           : fmt::format(", {:.1f} GB/s both together", backend.link->both / giga));
  }
  backend.notes.push_back(fmt::format(
      "lms: first steps are planned by {:.1f} TFLOP/s and {:.1f} GB/s of the device, "
      "later ones by measured kernels; link to the host: {}",
      backend.expected->flops_per_second / tera, backend.expected->bytes_per_second / giga, link));
}

Backend for_rank(const Config& config, int rank, int ranks);

// Returns the number of the process's own card on its host. CUDA_VISIBLE_DEVICES selects the
// visible cards; a launcher may restrict each process to the cards that it needs.
int ordinal_of(const Config& config) {
  const int devices = cuda::count_devices().devices;
  const int place = devices == config.num_gpus ? config.gpu.ordinal % devices : config.gpu.ordinal;
  const int ordinal = device_at(config.gpu.indices, place);
  check(config.gpu.indices.empty() || ordinal < devices,
        fmt::format("--gpu_indices={}: there is no GPU {}, only {} from 0 on", config.gpu.indices,
                    ordinal, devices));
  return ordinal;
}

Backend make(const Config& config) {
  Backend backend = start(config);
  backend.for_rank = for_rank;
  backend.device_exchange = &device_exchange;
  backend.instruction_sets = layers::cpu::to_string(layers::cpu::effective_isa());
  auto device = std::make_unique<cuda::CudaDevice>(ordinal_of(config));
  const GpuInfo gpu = info_of(device->facts());
  backend.gpu = gpu;
  backend.description =
      fmt::format("{}, compute capability {}, {} multiprocessors, driver for CUDA {}", gpu.name,
                  gpu.compute_capability, gpu.multiprocessors, gpu.driver);
  if (std::string note = cuda::compilation_note(device->facts().major, device->facts().minor,
                                                cuda::built_architectures());
      !note.empty()) {
    backend.notes.push_back(std::move(note));
  }
  add_choices(backend, config);  // before cuDNN starts: this checks versions
  const auto libraries = libraries_for(config, *device, backend);
  layers::cuda::add_kernels(backend.kernels, libraries);
  backend.tuning = tuning_of(libraries);
  if (libraries->options().tune || config.gpu.plan_cache) {
    add_node_seconds(backend.tuning, libraries, *device);
  }
  backend.memory = {
      .device = memory_for_us(config, device->memory_bytes(), device->facts().memory_bytes),
      .host = available_memory(),
      .text = memory_text()};
  add_speeds(config, *device, backend);
  add_telemetry(backend, device->facts());
  const std::int64_t cache_bytes = device->facts().cache_bytes;
  backend.device = std::move(device);
  backend.ceiling_work = {.matrix_side = 6144, .images = 256};
  backend.processors.caches = {cache_bytes};
  backend.steps = step_options(config);
  std::ranges::copy(step_notes(backend.steps), std::back_inserter(backend.notes));
  return backend;
}

// Makes the backend of a rank; each rank has its own device.
Backend for_rank(const Config& config, int /*rank*/, int ranks) {
  const int devices = cuda::count_devices().devices, ordinal = ordinal_of(config);
  check(ordinal < devices,
        fmt::format("--num_gpus={}, but there are {} CUDA devices for number {} of this host's "
                    "ranks: each needs one",
                    ranks, devices, ordinal + 1));
  return make(config);
}

std::string missing() {
  const cuda::DeviceCount found = cuda::count_devices();
  return found.devices > 0 ? "" : "no CUDA device: " + found.why_none;
}

// Describes a device without its memory and speed, which the caller adds.
Backend describe(const Config& config, const MachineModel& model) {
  const layers::cuda::Machine machine = machine_of(model);
  Backend backend = start(config);
  const std::string capability =
      fmt::format("{}.{}", machine.capability / 10, machine.capability % 10);
  backend.description =
      fmt::format("{} as it is described, none is used: compute capability {}, {} multiprocessors",
                  machine.name, capability, machine.multiprocessors);
  add_choices(backend, config);
  layers::cuda::LibraryOptions options = options_of(config);
  options.tune = false;
  const auto libraries = std::make_shared<Libraries>(machine, options);
  layers::cuda::add_kernels(backend.kernels, libraries);
  return backend;
}

}  // namespace

const GpuBackend& cuda_backend() {
  static constexpr GpuBackend backend{.missing = missing, .make = make, .describe = describe};
  return backend;
}

}  // namespace cnn::bench
