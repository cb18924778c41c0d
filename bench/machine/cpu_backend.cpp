#include "bench/machine/cpu_backend.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <iterator>

#include "bench/machine/caches.h"
#include "bench/machine/cpu_tuning.h"
#include "bench/machine/numa_nodes.h"
#include "bench/machine/prefault.h"
#include "bench/machine/processors.h"
#include "bench/machine/rapl.h"
#include "layers/cpu/hash.h"
#include "layers/cpu/isa.h"
#include "layers/cpu/kernels.h"
#include "layers/cpu/threads.h"
#include "runtime/cpu/device.h"
#include "runtime/cpu/memory.h"
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

// The threads that run kernels, and their permitted processors.
struct Team {
  int threads = 0;
  std::vector<int> cpus;
  bool pinned = false;  // thread i to cpus[i]; else as OpenMP's variables or the system decide
  std::string note{};   // for the user
};

// Uses the threads of --num_intra_threads, else of OMP_NUM_THREADS, else one for each processor
// that the process may use.
Team chosen_team(const Config& config) {
  Team team{.cpus = layers::cpu::affinity_cpus()};
  const auto available = static_cast<int>(team.cpus.size());
  const int request = config.cpu.intra_threads.value_or(0);
  const int wanted = request != 0 ? request : layers::cpu::asked_threads().value_or(available);
  team.threads = layers::cpu::available_threads(wanted);
  if (team.threads < wanted) {
    team.note = fmt::format(
        "OpenMP gives {} of {} threads: OMP_THREAD_LIMIT or OMP_MAX_ACTIVE_LEVELS permits no more",
        team.threads, wanted);
  }
  if (layers::cpu::user_binds_threads()) {
    return team;
  }
  // The flag may come from a script for a larger machine, and TensorFlow's pool may be larger too.
  if (request > available && team.threads > available) {
    team.threads = available;
    team.note = fmt::format(
        "--num_intra_threads={}: {} threads compute, one on each of the processors that are "
        "available",
        request, available);
  }
  team.pinned = team.threads <= available;
  if (team.pinned) {
    team.cpus.resize(static_cast<std::size_t>(team.threads));
  }
  return team;
}

void use(const Team& team) {
  if (team.pinned) {
    layers::cpu::use_threads(team.cpus);
  } else {
    layers::cpu::use_unpinned_threads(team.threads);
  }
}

CpuOptions device_options(const Team& team) {
  CpuOptions options;
  options.compute_on_caller = true;
  if (team.pinned) {
    options.caller_cpu = team.cpus.front();
  }
  options.on_stream_start = [team](Lane lane) {
    if (lane == Lane::compute) {
      use(team);
    }
  };
  return options;
}

// Returns the instruction sets to compute with. Throws Error if they do not suffice, with the
// limit.
layers::cpu::Isa usable_isa() {
  const layers::cpu::Isa isa = layers::cpu::effective_isa();
  if (!isa.avx2) {
    const auto limited = layers::cpu::limit_note(layers::cpu::hardware_isa(), isa);
    throw Error("the CPU backend needs AVX2 and FMA: " +
                limited.value_or("this processor has no AVX2"));
  }
  return isa;
}

DataType compute_type(const Config& config) {
  if (config.precision.type == Precision::bf16) {
    check(cpu_computes_bf16(),
          "--precision=bf16 needs AVX-512 on a CPU and oneDNN in the build; use --precision=fp32");
    return DataType::bf16;
  }
  check(config.precision.type != Precision::fp16,
        "--precision=fp16 needs a GPU (--device=gpu); on this CPU use --precision=bf16");
  return DataType::f32;
}

// Parses out[,in[,both]] in 10^9 bytes per second; without a value copies run at memory speed.
Link emulated_link(const Config& config) {
  const std::vector<double>& rates = config.lms.emulate_link_gbps;
  check(rates.size() <= 3 && std::ranges::all_of(rates, [](double rate) { return rate > 0; }),
        "--emulate_link_gbps takes out[,in[,both]], each more than 0");
  if (rates.empty()) {
    return {};
  }
  return {.out = 1e9 * rates[0],
          .in = 1e9 * (rates.size() > 1 ? rates[1] : rates[0]),
          .both = rates.size() > 2 ? 1e9 * rates[2] : 0};
}

// Reserves a part of the memory as device memory; the rest is its host memory.
void play_device(Backend& backend, int megabytes, const Link& link) {
  constexpr double copies = 4e9;  // bytes per second, one core beside another that computes
  const std::size_t device = static_cast<std::size_t>(megabytes) << 20U;
  check(device <= backend.memory.device,
        fmt::format("--device_memory_mb={} is more than the {} MiB that are free", megabytes,
                    backend.memory.device >> 20U));
  backend.memory = {
      .device = device, .host = backend.memory.device - device, .text = "--device_memory_mb"};
  backend.link = link.out > 0 ? link : Link{.out = copies, .in = copies};
}

Backend for_rank(const Config& config, int rank, int ranks);

// Implements --use_numa_affinity: keeps the only device of a process on one NUMA node, as
// TensorFlow does. Returns a note for the user; nothing if all processors are on that node.
std::optional<std::string> stay_on_numa_node(const Config& config) {
  const bool alone = config.num_gpus == 1 && !config.comm.launched;
  const std::vector<int> all = usable_processors();
  if (!config.cpu.numa_affinity || !alone) {
    return std::nullopt;
  }
  const std::vector<int> kept = on_first_numa_node(all);
  if (kept.size() == all.size()) {
    return std::nullopt;
  }
  stay_on(kept);
  return fmt::format(
      "--use_numa_affinity: the device stays on the {} of {} processors that are on the first NUMA "
      "node; --num_gpus=N has N devices on processors of all nodes",
      kept.size(), all.size());
}

Backend make(const Config& config) {
  Backend backend{.name = "cpu"};
  if (const std::optional<std::string> note = stay_on_numa_node(config)) {
    backend.notes.push_back(*note);
  }
  backend.for_rank = for_rank;
  backend.add_exchange = layers::cpu::add_exchange;
  backend.hash = layers::cpu::parallel_hash;
  const layers::cpu::Isa isa = usable_isa();
  backend.compute = compute_type(config);
  backend.precision = name_of(backend.compute);
  const Team team = chosen_team(config);
  if (!team.note.empty()) {
    backend.notes.push_back(team.note);
  }
  use(team);
  const Link link = emulated_link(config);
  CpuOptions options = device_options(team);
  options.link = {.out = link.out, .in = link.in, .both = link.both};
  backend.device = std::make_unique<CpuDevice>(std::move(options));
  const std::string processor = processor_name();
  if (config.gpu.tune.value_or(false)) {
    add_cpu_tuning(config, processor, team.threads, backend);
  }
  add_reference(backend.kernels);
  layers::cpu::add_kernels(backend.kernels, {.winograd = config.cpu.winograd,
                                             .weights_change = !config.mode.forward_only});
  backend.processors = {
      .threads = team.threads, .cpus = team.cpus, .caches = cache_bytes(team.cpus)};
  backend.instruction_sets = layers::cpu::to_string(isa);
  backend.description =
      fmt::format("{}, {} threads, {}", processor, team.threads, backend.instruction_sets);
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
  const std::size_t available = backend.device->memory_bytes();
  const std::size_t kept = kept_free(available);
  backend.memory = {
      .device = available - kept,
      .text = fmt::format("available memory and cgroup limit, less {:.0f} MiB that stay free",
                          std::ldexp(kept, -20))};
  backend.prefault = [](std::span<std::byte> memory) {
    prefault(memory, [] { return available_memory(); });
  };
  if (config.lms.device_memory_mb) {
    play_device(backend, *config.lms.device_memory_mb, link);
  }
  backend.steps = step_options(config);
  std::ranges::copy(step_notes(backend.steps), std::back_inserter(backend.notes));
  return backend;
}

// Makes the backend on the rank's part of the processors that the program may use, or on one of
// them if there are more ranks. Threads that this thread starts inherit the processors.
Backend for_rank(const Config& config, int rank, int ranks) {
  stay_on(part_of(usable_processors(), rank, ranks));
  return make(config);
}

}  // namespace

BackendKind cpu_backend() { return {.device = "cpu", .make = make}; }

bool cpu_computes_bf16() { return layers::cpu::computes_bf16(); }

}  // namespace cnn::bench
