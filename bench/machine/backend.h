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
#include "bench/machine/disk_speed.h"
#include "bench/machine/machine_info.h"
#include "bench/machine/telemetry.h"
#include "runtime/communicator.h"
#include "runtime/device.h"
#include "runtime/kernel.h"
#include "runtime/tensor_hash.h"

namespace cnn::bench {

// The peak bandwidth of a device with data in a cache.
struct CacheCeiling {
  double bytes = 0;  // its size; 0: no cache
  double bytes_per_second = 0;
};

// The peak rates of a device.
struct Ceilings {
  double flops_per_second = 0;  // dense matrix product on random data in the run's compute type
  double bytes_per_second = 0;  // reads plus writes, for tensors far larger than caches
  std::array<CacheCeiling, 2> caches{};  // if known: smallest first
};

// Bandwidth between a device and its host in bytes per second; 0: unknown. `both` is 0 if the
// directions do not slow each other down.
struct Link {
  double out = 0, in = 0;
  double both = 0;  // both directions together
};

// The fractions of the ceilings that kernels reach.
struct Efficiency {
  double products = 1;  // of arithmetic-bound kernels
  double bytes = 1;     // of memory-bound kernels
};

// A machine known only by its description.
struct Described {
  std::string machine;  // "H200"
  Ceilings ceilings;
  Efficiency efficiency;
  std::string source;      // of the ceilings: measured, published, estimated
  std::string calibrated;  // the published speed behind the efficiency; empty: none
  std::string assumed;     // about kernels without a description; empty: all have one

  // Returns the rates that kernels reach.
  Ceilings reached() const {
    return {.flops_per_second = efficiency.products * ceilings.flops_per_second,
            .bytes_per_second = efficiency.bytes * ceilings.bytes_per_second};
  }
};

struct MachineModel;

// The exchange with other ranks for a device whose memory the host cannot see.
struct DeviceExchange {
  // Adds the kernels of the exchange to the table.
  void (*add)(KernelTable& table, std::shared_ptr<StreamCommunicator> communicator) = nullptr;
  // Returns the device library's handle of a stream.
  void* (*native)(Stream& stream) = nullptr;
  // Sets the poll callback of waits for the device: called repeatedly with true, and once with
  // false at the end.
  void (*on_poll)(Device& device, std::function<void(bool waiting)> poll) = nullptr;
  // Page-locks host memory for faster copies until the returned owner is destroyed.
  std::shared_ptr<void> (*pin)(std::span<std::byte> memory) = nullptr;
  // See layers::cuda::wait_for_flag.
  void (*wait_for_flag)(Stream& stream, std::uint32_t* flag) = nullptr;
};

// The memory that is free when a run starts, in bytes.
struct MemoryLimits {
  std::size_t device = 0;
  // Host memory for swapped activations. Nothing: the device computes in host memory.
  std::optional<std::size_t> host;
  std::string text;  // the origin of `device`: "available memory and cgroup limit"
};

// The executor's options from the flags; see ExecutorOptions.
struct StepOptions {
  bool record = true;          // into a graph that the device replays, if it can
  bool wait_for_each = false;  // after every kernel and copy, so that an error names the step
  bool verify = false;         // fills free memory with NaNs and checks swapped tensors
};
StepOptions step_options(const Config& config);
// Returns warnings about options that change the measured times.
std::vector<std::string> step_notes(const StepOptions& options);

// The choice among several kernels for one op, by timing if needed. All functions are empty if a
// backend has nothing to choose.
struct KernelTuning {
  std::string notice;  // shown before programs are compiled, because tuning may take long
  // From then on, kernels are described without timing.
  std::function<void()> stop;
  // Returns the choices for all programs compiled so far, as input of adopt() on another rank.
  std::function<std::string()> choices;
  // Adopts the choices of rank 0, before any program is compiled. Throws Error, at once or when a
  // program is compiled, if this device cannot run one of them.
  std::function<void(const std::string& of_first_rank)> adopt;
  // Returns the seconds of a node, see layers::NodeSeconds; `kernels` runs the node.
  std::function<std::optional<double>(const KernelTable& kernels, const std::string& key,
                                      const Op& op, const Signature& signature)>
      node_seconds;
  // From then on node_seconds returns nothing, also on ranks that adopt these choices.
  std::function<void()> forget_node_seconds;
  // Returns notes for the user that arose since the last call.
  std::function<std::vector<std::string>()> take_notes;
};

// The processors that compute; no threads and cpus if another device does.
struct ComputeProcessors {
  std::int64_t threads = 0;
  std::vector<int> cpus;
  // Bytes of each level that all of them, or all of the other device, share; smallest first.
  std::vector<std::int64_t> caches;
};

// The amount of work that reaches a device's peak rates, since it fills the device.
struct CeilingWork {
  std::int64_t matrix_side = 1536;  // of a matrix product
  std::int64_t images = 64;  // minimum number of copied images, of 64 x 64 x 64 elements each
};

// A device with its kernels and limits. Immutable once it is made; RankContext has a rank's share
// of the device and its exchange with other ranks.
struct Backend {
  std::string name;  // "cpu"
  std::unique_ptr<Device> device;
  KernelTable kernels;
  DataType compute = DataType::f32;  // of activations, from --precision
  Layout (*preferred_layout)(DataType) = nullptr;
  MemoryLimits memory;
  StepOptions steps;
  KernelTuning tuning;

  // For reports.
  std::string precision;           // of products: "f32", "tf32", "f16"
  std::string description;         // one line: "Intel(R) Xeon(R) Processor, 2 threads, avx2"
  std::vector<std::string> notes;  // further lines for the user
  std::string instruction_sets;    // "avx2 avx512"
  std::vector<std::pair<std::string, std::string>> libraries;  // name, loaded version
  std::optional<GpuInfo> gpu;
  ComputeProcessors processors;
  std::unique_ptr<TelemetrySource> telemetry;  // null if nothing can be measured

  std::optional<Link> link;  // to host memory, if the device has its own memory
  // Behind host memory, if --lms_disk names a folder and the device has its own memory.
  std::optional<DiskSpeed> disk;
  // The rates that LMS plans with before any kernel has run. Nothing: rates of a typical processor
  // with that many threads.
  std::optional<Ceilings> expected;
  std::optional<Described> described;  // if set, `device` is null and no kernel can be made
  CeilingWork ceiling_work;

  // Hashes a tensor in host memory with all compute threads; called in the order of lane compute.
  // Null: the host hashes with one thread.
  std::uint64_t (*hash)(const TensorView& tensor, const HashKeys& keys) = nullptr;
  // Touches allocated memory before the first step: throws DoesNotFit if the system cannot provide
  // all of it. Empty: the device's allocations are always backed.
  std::function<void(std::span<std::byte>)> prefault;

  // Makes a backend on one rank's part of the machine, for several ranks in a process; called on
  // the rank's thread. Its memory limits are still those of the whole machine. Null: the device
  // cannot be divided.
  Backend (*for_rank)(const Config& config, int rank, int ranks) = nullptr;
  // Adds kernels to the table that exchange with other ranks through a communicator, which must
  // outlive the table.
  void (*add_exchange)(KernelTable& table, Communicator& communicator) = nullptr;
  // Replaces add_exchange if the device has its own memory.
  const DeviceExchange* device_exchange = nullptr;

  // Returns whether batches of real data are copied to the device while the previous step runs.
  bool has_own_memory() const { return memory.host.has_value(); }
};

// A kind of backend in this build.
struct BackendKind {
  std::string_view device;  // value of --device: "cpu", "gpu"
  // Returns why this machine lacks the device; empty if it has one. May load libraries. Null: every
  // machine has one.
  std::string (*missing)() = nullptr;
  // Makes the backend and prepares the calling thread to make kernels for it. Throws Error if it
  // cannot compute in the requested precision.
  Backend (*make)(const Config& config) = nullptr;
  // Describes the kernels that libraries and our code would use on a machine whose profile has the
  // properties that the libraries query, without the device. Null: this kind cannot.
  Backend (*describe)(const Config& config, const MachineModel& model) = nullptr;
};

// Returns BackendKind::missing of this kind, or nothing.
std::string why_missing(const BackendKind& kind);

// Returns the kind for that device, or null if this build has none.
const BackendKind* find_backend(std::span<const BackendKind> kinds, std::string_view device);

// Returns the backend for the flags: of this machine's device, or of the machine that --simulate
// names. Throws Error if there is none.
Backend make_backend(const Config& config, std::span<const BackendKind> kinds);

}  // namespace cnn::bench
