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

// An injected kernel failure that breaks its device. The test expects it, so it is no violation.
struct KernelFault {
  int device = 0;
  unsigned kernel = 0;  // index in the device's order of kernels, from 0
};
inline constexpr const char* injected_kernel_fault = "the kernel breaks, as the test asks";

struct Settings {
  int devices = 1;
  Description description = described_machine();  // of each device
  std::size_t bytes_per_device = std::size_t{2} << 30U;
  Delays delays;
  std::string counts_file;  // written at the end if it has a name
  std::optional<KernelFault> fault;
};

// The state of one emulated device.
struct DeviceState {
  int queued = 0;                     // pieces of work that have not ended
  std::atomic<unsigned> kernels = 0;  // kernels that have begun
  cudaError_t sticky = cudaSuccess;   // every later call returns this error
  std::string fault;                  // the reason for the sticky error
};

// All state behind the runtime's functions. There is one driver per process, as in reality.
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

  unsigned launches = 0;        // kernels launched so far, including captured ones
  unsigned executions = 0;      // library calls executed so far, including captured ones
  unsigned replays = 0;         // graphs replayed so far
  std::string capture_problem;  // why the last invalid capture became invalid
  // First addresses of the memory that communicators have registered; guarded by the lock.
  std::multiset<const void*> attached;

  std::unique_ptr<Queue> make_queue(int device);
  // Adds work to a stream, or to the graph that the stream captures. Needs the lock.
  void enqueue(CUstream_st& stream, Work work);
  // Marks a device as broken permanently. Needs the lock.
  void break_device(int device, cudaError_t error, const std::string& why);
  bool is_used(const Block& block) const;  // by queued work; needs the lock
  void begin_kernel(int device);           // throws if this kernel must break the device

 private:
  unsigned queues_ = 0;
};

// Returns the driver. set_up() makes it with its settings, otherwise the first use makes it with
// defaults that environment variables override:
//   CNN_EMULATED_DEVICES      number of devices
//   CNN_EMULATED_MB           memory of each device in MiB
//   CNN_EMULATED_MACHINE      file that describes each device
//   CNN_EMULATED_SEED         seed of the random delays
//   CNN_EMULATED_KERNEL_FAULT DEVICE:KERNEL, the launch that fails
//   CNN_EMULATED_COUNTS       file that gets the numbers of launches, executions and replays, and
//                             the most memory that a device had in use
Driver& driver();

// Starts again with other settings. Reports a violation if objects or memory are still alive.
void set_up(const Settings& settings);

// Returns one line for each stream, event, graph and block that is alive.
std::vector<std::string> alive();

// Returns why the last invalid capture became invalid, or "" if there was none.
std::string capture_problem();

// Stops a stream before its next piece of work, so that tests can control the order.
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
