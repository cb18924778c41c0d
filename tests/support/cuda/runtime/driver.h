#pragma once

#include <atomic>
#include <cstddef>
#include <cuda_runtime_api.h>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/cuda/runtime/description.h"
#include "tests/support/cuda/runtime/memory.h"
#include "tests/support/cuda/runtime/objects.h"
#include "tests/support/cuda/runtime/queue.h"

namespace cnn::tests::emulated {

// A kernel that breaks its device on request: the test expects it, so it is no violation.
struct KernelFault {
  int device = 0;
  unsigned kernel = 0;  // by the order in which the device runs them, from 0
};
inline constexpr const char* injected_kernel_fault = "the kernel breaks, as the test asks";

struct Settings {
  int devices = 1;
  Description description = described_machine();  // of each
  std::size_t bytes_per_device = std::size_t{2} << 30U;
  Delays delays;
  std::string counts_file;  // written at the end if it has a name
  std::optional<KernelFault> fault;
};

// The state of one emulated device.
struct DeviceState {
  int queued = 0;                     // pieces of work that have not ended
  std::atomic<unsigned> kernels = 0;  // that have begun
  cudaError_t sticky = cudaSuccess;   // every later call returns it
  std::string fault;                  // what broke the device
};

// All state behind the functions of the runtime: one for the process, as the real one is.
class Driver {
 public:
  explicit Driver(const Settings& settings);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  Lock lock;
  Settings settings;
  Memory memory;
  std::vector<DeviceState> devices;
  std::deque<std::unique_ptr<CUstream_st>> streams;
  std::deque<std::unique_ptr<CUevent_st>> events;
  std::deque<std::unique_ptr<CUgraph_st>> graphs;
  std::deque<std::unique_ptr<CUgraphExec_st>> executables;

  unsigned launches = 0;        // of kernels so far, those that were captured among them
  unsigned executions = 0;      // of work of the libraries so far, counted in the same way
  unsigned replays = 0;         // of graphs so far
  std::string capture_problem;  // why the last invalid capture became so
  // Begins of the memory that communicators know of; with the lock.
  std::multiset<const void*> attached;

  std::unique_ptr<Queue> make_queue(int device);
  // Needs the lock: adds work to a stream, or to the graph that it captures.
  void enqueue(CUstream_st& stream, Work work);
  // Marks a device as broken, for good. Needs the lock.
  void break_device(int device, cudaError_t error, const std::string& why);
  bool is_used(const Block& block) const;  // by queued work; needs the lock
  void begin_kernel(int device);           // throws if it is to break the device

 private:
  unsigned queues_ = 0;
};

// The driver, made with the settings of set_up(), or when it is first used with the default ones,
// where the environment does not say otherwise: CNN_EMULATED_DEVICES is their number,
// CNN_EMULATED_MB the memory of each in MiB, CNN_EMULATED_MACHINE the file that describes it,
// CNN_EMULATED_SEED that of the delays, CNN_EMULATED_KERNEL_FAULT (DEVICE:KERNEL) the launch that
// fails, and CNN_EMULATED_COUNTS names a file that gets the numbers of launches, executions and
// replays and the most memory that a device has had in use.
Driver& driver();

// Starts afresh with other settings. Tells of a violation if objects or memory are still alive.
void set_up(const Settings& settings);

// One line for each stream, event, graph and block that is alive.
std::vector<std::string> alive();

// Returns what made the last capture invalid that became so; empty if none did.
std::string capture_problem();

// Stops a stream before its next piece of work, for tests of orders.
class Hold {
 public:
  explicit Hold(cudaStream_t stream);
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  cudaStream_t stream_;
};

}  // namespace cnn::tests::emulated
