#include "bench/machine/cpu_backend.h"

#include <fmt/format.h>
#include <fstream>

#include "bench/machine/caches.h"
#include "bench/machine/rapl.h"
#include "layers/cpu/isa.h"
#include "layers/cpu/kernels.h"
#include "layers/cpu/threads.h"
#include "runtime/cpu/device.h"
#include "runtime/cpu/reference_kernel.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

// As many processors as --num_intra_threads asks for, of those the process may use.
std::vector<int> chosen_cpus(const Config& config) {
  std::vector<int> cpus = layers::cpu::affinity_cpus();
  const int asked = config.cpu.intra_threads.value_or(0);
  if (asked == 0) {
    return cpus;
  }
  check(asked <= static_cast<int>(cpus.size()),
        fmt::format("--num_intra_threads={} but only {} processors are available: threads are "
                    "pinned one to a processor, ask for at most {}",
                    asked, cpus.size(), cpus.size()));
  cpus.resize(static_cast<std::size_t>(asked));
  return cpus;
}

DataType compute_type(const Config& config) {
  if (config.precision.type == Precision::bf16) {
    check(cpu_computes_bf16(),
          "--precision=bf16 needs AVX-512 on a CPU and oneDNN in the build; use --precision=fp32");
    return DataType::bf16;
  }
  check(config.precision.type != Precision::fp16,
        "--precision=fp16 is for GPUs; on a CPU use --precision=bf16 (or --use_fp16, which does)");
  return DataType::f32;
}

Backend make(const Config& config) {
  Backend backend{.name = "cpu", .device_text = "/cpu:0"};
  const layers::cpu::Isa isa = layers::cpu::effective_isa();
  check(isa.avx2, "this processor has no AVX2: the CPU backend needs AVX2 and FMA");
  backend.compute = compute_type(config);
  backend.precision = name_of(backend.compute);
  const std::vector<int> cpus = chosen_cpus(config);
  layers::cpu::use_threads(cpus);
  CpuOptions options;
  options.compute_on_caller = true;
  options.caller_cpu = cpus.front();
  options.on_stream_start = [cpus](Lane lane) {
    if (lane == Lane::compute) {
      layers::cpu::use_threads(cpus);
    }
  };
  backend.device = std::make_unique<CpuDevice>(std::move(options));
  add_reference(backend.kernels);
  layers::cpu::add_kernels(backend.kernels, {.winograd = config.cpu.winograd});
  backend.threads = static_cast<std::int64_t>(cpus.size());
  backend.cpus = cpus;
  backend.caches = cache_bytes(cpus);
  backend.instruction_sets = layers::cpu::to_string(isa);
  backend.description =
      fmt::format("{}, {} threads, {}", processor_name(), cpus.size(), backend.instruction_sets);
  for (const layers::cpu::LibraryVersion& library : layers::cpu::library_versions()) {
    backend.libraries.emplace_back(library.name, library.version);
  }
  if (const auto note = layers::cpu::limit_note(layers::cpu::hardware_isa(), isa)) {
    backend.notes.push_back(*note);
  }
  if (backend.libraries.empty()) {
    backend.notes.emplace_back(
        "this build lacks oneDNN: convolutions, products and pools run in plain loops, which are "
        "correct and very slow");
  }
  backend.telemetry = open_rapl();
  backend.preferred_layout = [](DataType type) { return layers::cpu::preferred_layout(type); };
  backend.memory_limit = backend.device->memory_bytes();
  backend.memory_text = "available memory and cgroup limit";
  return backend;
}

}  // namespace

BackendKind cpu_backend() { return {.device = "cpu", .make = make}; }

bool cpu_computes_bf16() { return layers::cpu::computes_bf16(); }

}  // namespace cnn::bench
