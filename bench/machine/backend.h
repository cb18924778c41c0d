#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/flags/config.h"
#include "bench/machine/machine_info.h"
#include "bench/machine/telemetry.h"
#include "runtime/communicator.h"
#include "runtime/device.h"
#include "runtime/kernel.h"
#include "runtime/tensor_hash.h"

namespace cnn::bench {

// The ceiling of a device with data that lies in a cache.
struct CacheCeiling {
  double bytes = 0;  // that it holds; 0: there is none
  double bytes_per_second = 0;
};

// The peak rates of a device.
struct Ceilings {
  double flops_per_second = 0;  // dense matrix product on random data in the run's compute type
  double bytes_per_second = 0;  // read and written, of tensors that are far larger than caches
  std::array<CacheCeiling, 2> caches{};  // if known: smallest first
};

// Bytes a second that a device and its host exchange; 0: not known, or of `both`: not shared.
struct Link {
  double out = 0, in = 0;
  double both = 0;  // of both directions at once
};

// The shares of the ceilings that kernels reach.
struct Efficiency {
  double products = 1;  // of what is limited by arithmetic
  double bytes = 1;     // of what is limited by memory
};

// A machine that is known by its description only.
struct Described {
  std::string machine;  // "H200"
  Ceilings ceilings;
  Efficiency efficiency;
  std::string source;      // of the ceilings: measured, published, estimated
  std::string calibrated;  // the speed that the efficiency was chosen to meet; empty: none
  std::string assumed;     // of kernels that nothing here can describe; empty: all are described

  // Returns the rates that kernels reach.
  Ceilings reached() const {
    return {.flops_per_second = efficiency.products * ceilings.flops_per_second,
            .bytes_per_second = efficiency.bytes * ceilings.bytes_per_second};
  }
};

struct MachineModel;

// How steps of a device whose memory the host does not see exchange with other ranks.
struct DeviceExchange {
  // Makes the table exchange by it.
  void (*add)(KernelTable& table, std::shared_ptr<StreamCommunicator> communicator) = nullptr;
  // Returns the handle that the device's own library has for a stream.
  void* (*native)(Stream& stream) = nullptr;
  // Sets what a wait for the device calls over and over, and with false when it is over.
  void (*on_poll)(Device& device, std::function<void(bool waiting)> look) = nullptr;
  // The device copies faster from and to this host memory, until what is returned is gone.
  std::shared_ptr<void> (*pin)(std::span<std::byte> memory) = nullptr;
  // As layers::cuda::wait_for_flag.
  void (*wait_for_flag)(Stream& stream, std::uint32_t* flag) = nullptr;
};

// Memory that is free when a run starts, in bytes.
struct MemoryLimits {
  std::size_t device = 0;
  // Host memory for swapped activations. Nothing: the device computes in the host's memory.
  std::optional<std::size_t> host;
  std::string text;  // says how `device` was found: "available memory and cgroup limit"
};

// How the executor runs the steps of a program, as the flags ask; see ExecutorOptions.
struct StepOptions {
  bool record = true;          // into a graph that the device replays, where it can
  bool wait_for_each = false;  // after every kernel and copy, so that an error names it
  bool verify = false;         // fills free memory with NaNs and checks swapped tensors
};
StepOptions step_options(const Config& config);
// Returns lines that warn the user of options under which times are not those of a normal run.
std::vector<std::string> step_notes(const StepOptions& options);

// How a backend chooses among several kernels for one op, perhaps by timing them. All functions are
// empty where nothing is chosen.
struct KernelTuning {
  std::string notice;  // tells the user, before programs are compiled, that it may take a while
  // From now on kernels are described without timing anything.
  std::function<void()> stop;
  // Returns the choices for all programs compiled so far, as text for adopt() of another rank.
  std::function<std::string()> choices;
  // Makes the choices of rank 0, before any program is compiled. Throws Error, then or when a
  // program is compiled, where this device cannot run one of them.
  std::function<void(const std::string& of_first_rank)> adopt;
  // Returns the seconds of a node, as layers::NodeSeconds has it; `kernels` runs it.
  std::function<std::optional<double>(const KernelTable& kernels, const std::string& key,
                                      const Op& op, const Signature& signature)>
      node_seconds;
  // From now on node_seconds returns nothing, and so for ranks that adopt these choices.
  std::function<void()> forget_node_seconds;
  // Returns notes for the user that have come up since the last call.
  std::function<std::vector<std::string>()> take_notes;
};

// The processors that compute; none where another device does.
struct ComputeProcessors {
  std::int64_t threads = 0;
  std::vector<int> cpus;
  std::vector<std::int64_t> caches;  // bytes of each level, of all processors; smallest first
};

// How much work shows the peak rates of a device: it must fill the device.
struct CeilingWork {
  std::int64_t matrix_side = 1536;  // of a matrix product
  std::int64_t images = 64;         // copied at least, of 64 x 64 x 64 elements each
};

// A device with its kernels and limits. It is made once and does not change afterwards; a rank's
// share of it and its exchange with other ranks are in RankContext.
struct Backend {
  std::string name;  // "cpu"
  std::unique_ptr<Device> device;
  KernelTable kernels;
  DataType compute = DataType::f32;  // of activations, as --precision says
  Layout (*preferred_layout)(DataType) = nullptr;
  MemoryLimits memory;
  StepOptions steps;
  KernelTuning tuning;

  // For reports.
  std::string precision;           // of products: "f32", "tf32", "f16"
  std::string description;         // one line: "Intel(R) Xeon(R) Processor, 2 threads, avx2"
  std::vector<std::string> notes;  // further lines that the user should see
  std::string instruction_sets;    // "avx2 avx512"
  std::vector<std::pair<std::string, std::string>> libraries;  // name, version running
  std::optional<GpuInfo> gpu;
  ComputeProcessors processors;
  std::unique_ptr<TelemetrySource> telemetry;  // null where nothing can be measured

  std::optional<Link> link;  // to the host's memory, where the device has its own
  // The rates by which LMS plans before any kernel has run. Nothing: those of a usual processor
  // with that many threads.
  std::optional<Ceilings> expected;
  std::optional<Described> described;  // if so, `device` is null and no kernel can be made
  CeilingWork ceiling_work;

  // Hashes a tensor in host memory by all threads that compute; called in the order of lane
  // compute. Null: the host has one thread for it.
  std::uint64_t (*hash)(const TensorView& tensor, const HashKeys& keys) = nullptr;
  // Touches memory that the device has allocated, before the first step: throws DoesNotFit where
  // the system cannot give all of it after all. Empty: what a device allocates is there.
  std::function<void(std::span<std::byte>)> secure;

  // Makes a backend on the part of the machine that is that one's of several ranks in a process;
  // called on the rank's thread. Its memory limits are still those of the whole machine. Null: such
  // a device cannot be divided.
  Backend (*for_rank)(const Config& config, int rank, int ranks) = nullptr;
  // Adds kernels to the table that exchange with other ranks by a communicator, which must outlive
  // it.
  void (*add_exchange)(KernelTable& table, Communicator& communicator) = nullptr;
  const DeviceExchange* device_exchange = nullptr;  // instead, where the device has own memory

  // Batches of real data then go ahead to the device while the step before them runs.
  bool has_own_memory() const { return memory.host.has_value(); }
};

// A kind of backend that this build has.
struct BackendKind {
  std::string_view device;  // what --device says: "cpu", "gpu"
  // Why this machine has none; empty if it has one. May load libraries. Null: every machine has
  // one.
  std::string (*missing)() = nullptr;
  // The calling thread is prepared to make kernels for it. Throws Error if it cannot compute in the
  // asked precision.
  Backend (*make)(const Config& config) = nullptr;
  // For a machine whose profile has what the libraries ask of a device, without one: what they and
  // our kernels would do there. Null: this kind cannot.
  Backend (*describe)(const Config& config, const MachineModel& model) = nullptr;
};

// BackendKind::missing of this kind.
std::string why_missing(const BackendKind& kind);

// The kind for that device, or null if this build has none.
const BackendKind* find_backend(std::span<const BackendKind> kinds, std::string_view device);

// The backend that the flags ask for: of this machine's device, or of the one that --simulate
// names. Throws Error if there is none.
Backend make_backend(const Config& config, std::span<const BackendKind> kinds);

}  // namespace cnn::bench
