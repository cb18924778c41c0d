#pragma once

#include <array>
#include <atomic>
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

struct Profile;

// How steps of a device whose memory the host does not see exchange with other ranks.
struct DeviceExchange {
  // Makes the table exchange by it.
  void (*add)(KernelTable& table, std::shared_ptr<StreamCommunicator> communicator) = nullptr;
  // Returns the handle that the device's own library has for a stream.
  void* (*native)(Stream& stream) = nullptr;
  // Sets what a wait for the device calls over and over, and with false when it is over.
  void (*look_while_waiting)(Device& device, std::function<void(bool waiting)> look) = nullptr;
  // The device copies faster from and to this host memory, until what is returned is gone.
  std::shared_ptr<void> (*pin)(std::span<std::byte> memory) = nullptr;
  // As layers::cuda::wait_for_flag.
  void (*wait_for_flag)(Stream& stream, std::uint32_t* flag) = nullptr;
};

// A device, what it can run, and what the program says about it.
struct Backend {
  std::string name;         // "cpu"
  std::string device_text;  // for the header: "/cpu:0"
  std::unique_ptr<Device> device;
  KernelTable kernels;
  DataType compute = DataType::f32;  // of activations, as --precision says
  std::string precision;             // of products, for reports: "f32", "tf32", "f16"
  std::string description;           // one line: "Intel(R) Xeon(R) Processor, 2 threads, avx2"
  std::vector<std::string> notes;    // further lines that the user should see
  std::int64_t threads = 0;          // of the processor that compute; 0: another device does
  std::vector<int> cpus;             // these processors; empty: another device does
  std::vector<std::int64_t> caches;  // bytes of each level, of all that compute; smallest first
  std::string instruction_sets;      // "avx2 avx512"
  std::optional<GpuInfo> gpu;
  std::unique_ptr<TelemetrySource> telemetry;                  // null if nothing tells
  std::vector<std::pair<std::string, std::string>> libraries;  // name, version running
  Layout (*preferred_layout)(DataType) = nullptr;
  std::size_t memory_limit = 0;  // bytes free for the run when it started
  std::string memory_text;       // what these are: "available memory and cgroup limit"
  // Bytes free on the host, for swapped activations; nothing: the device computes in that memory.
  std::optional<std::size_t> host_memory_limit;
  // Batches of real data then go ahead to the device while the step before them runs.
  bool has_own_memory() const { return host_memory_limit.has_value(); }
  std::optional<Link> link;  // to the host's memory, where the device has its own
  // The speeds that kernels may be expected to reach, by which LMS plans before any has run.
  // Nothing: those of a usual processor with that many threads.
  std::optional<Ceilings> expected;
  bool record_steps = true;         // where the device can
  bool wait_for_each_step = false;  // of the plan, so that an error names it
  // Hashes a tensor in host memory by all threads that compute; called in the order of lane
  // compute. Null: the host has one thread for it.
  std::uint64_t (*hash)(const TensorView& tensor, const HashKeys& keys) = nullptr;
  bool verify_steps = false;  // look after their memory, see ExecutorOptions::verify
  // Makes sure of memory that the device has given, before the first step: throws DoesNotFit where
  // it is not there after all. Empty: what a device gives is there.
  std::function<void(std::span<std::byte>)> secure;
  // Says what compiling programs may take its time for, as a line for the user before it; empty:
  // nothing.
  std::string before_compiling;
  // Nothing that a kernel table describes from now on is worth to be timed: it will not run. Empty
  // where nothing is timed.
  std::function<void()> stop_tuning;
  // How the kernels of all programs compiled so far were chosen, as text; and the order to choose
  // as that text of another rank says, before any program is compiled. Throws Error, then or when
  // programs are compiled, where this device cannot. Empty where nothing is chosen.
  std::function<std::string()> choices;
  std::function<void(const std::string& of_first_rank)> adopt_choices;
  // Further notes that have come up since `notes`, while programs were compiled and in steps.
  // Empty: none ever.
  std::function<std::vector<std::string>()> later_notes;
  std::optional<Described> described;  // if so, `device` is null and no kernel can be made

  // The number of this device among those that exchange gradients, and how many there are.
  int rank = 0, ranks = 1;
  // Memory for variables and steps that other ranks see. Empty: the device's own.
  std::function<Buffer(std::size_t)> shared_memory;
  // A backend on a part of this one's device, for one of several ranks; called on the rank's
  // thread. Null: such a device is not divided.
  Backend (*for_rank)(const Config& config, int rank, int ranks) = nullptr;
  // Makes the table exchange with other ranks by a communicator, which must outlive it.
  void (*add_exchange)(KernelTable& table, Communicator& communicator) = nullptr;
  const DeviceExchange* device_exchange = nullptr;  // instead, where the device has own memory
  // Where this rank writes how far it is, for those who wait for it (allreduce/progress.h). Null:
  // nobody looks.
  std::atomic<std::uint64_t>* progress = nullptr;

  // How much work shows what the device reaches at best: it must fill the device.
  std::int64_t matrix_side = 1536;  // of a matrix product
  std::int64_t images = 64;         // copied at least, of 64 x 64 x 64 elements each
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
  Backend (*describe)(const Config& config, const Profile& profile) = nullptr;
};

// BackendKind::missing of this kind.
std::string why_missing(const BackendKind& kind);

// The kind for that device, or null if this build has none.
const BackendKind* find_backend(std::span<const BackendKind> kinds, std::string_view device);

// Bytes free that ranks of a machine share: the host's, with all that a processor plays to have.
std::size_t free_bytes(const Backend& backend);
// The backend becomes that of one of so many ranks which divide this memory. The memory of a device
// of its own stays as large, and its host's part becomes smaller. Throws Error if that is too
// little for what a processor plays to have.
void take_part_of_memory(Backend& backend, std::size_t bytes, std::size_t ranks);

// The backend that the flags ask for: of this machine's device, or of the one that --simulate
// names. Throws Error if there is none.
Backend make_backend(const Config& config, std::span<const BackendKind> kinds);

}  // namespace cnn::bench
