#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device.h"
#include "runtime/disk_file.h"
#include "runtime/kernel.h"
#include "runtime/memory_watch.h"
#include "runtime/node_observer.h"
#include "runtime/program.h"
#include "runtime/timeline.h"
#include "runtime/variables.h"

namespace cnn {

struct ExecutorOptions {
  // Records the enqueued step from the second run on and replays it, where the device can record. A
  // step that cannot be recorded is enqueued in every run.
  bool record = true;
  // Throws Error if a step with nodes of lane communicate cannot be recorded: its exchange does not
  // mix ranks that replay the step with ranks that enqueue it.
  bool must_record_exchange = false;
  // Waits for each step of the plan before it enqueues the next, and records nothing: then an error
  // of the device names the step that caused it. Slow.
  bool wait_for_each = false;
  // Waits for each step and checks it with a MemoryWatch: a tensor read after its bytes are freed
  // is full of NaNs, and a tensor that returns changed from the host is an error. Very slow.
  bool verify = false;
  // Copy lanes that move at most this many bytes per step share the compute stream: a short copy
  // costs less than an event wait on another stream and back.
  std::size_t max_compute_stream_copy_bytes = std::size_t{64} << 10U;
  // Host memory for swapped tensors, from Device::allocate_host: at least plan.memory.host_bytes,
  // 64-byte aligned; executors may share it like the arena. Empty: the executor allocates it.
  std::span<std::byte> host_arena = {};
  // The file of stored tensors, with plan.memory.disk_bytes reserved; it must outlive the executor.
  // May be null if the plan stores none.
  const DiskFile* disk = nullptr;
};

// Issues a program's steps on its lanes, in every training step. The constructor resolves operands
// once; run() allocates nothing and synchronises with the host once, at its end.
class Executor {
 public:
  // arena: device bytes, at least program.plan.memory.device_bytes, 64-byte aligned; another
  // executor that does not run at the same time may share it. All references must outlive the
  // executor. Throws if an arena is too small or a variable is missing or described differently.
  Executor(Program program, Device& device, Variables& variables, std::span<std::byte> arena,
           ExecutorOptions options = {});
  Executor(Executor&&) = default;

  // inputs: host tensors in the order of graph.inputs(), best in memory of Device::allocate_host at
  // the same few addresses in every run. Returns when the results are on the host. Throws the error
  // of the first kernel or copy that failed, with the step's name if enqueueing failed, unless the
  // error tells of more than the step; the results are then undefined.
  void run(std::span<const TensorView> inputs);
  // Runs the same step and returns the time of every plan step; never recorded, slower.
  Timeline profile(std::span<const TensorView> inputs);

  // Notifies the observer, which must outlive the executor, of every node from the next run on,
  // after observers added earlier. Calls stop_recording(): a replay would bypass the observers.
  void observe(NodeObserver& observer);
  // Enqueues every later run, as with ExecutorOptions::record = false.
  void stop_recording() {
    records_ = false;
    recorded_.clear();
  }

  // Host copies of the graph's outputs, in the order of graph.outputs(); overwritten by every run.
  std::span<const TensorView> results() const { return results_; }
  // Ends this executor: another one may run the same kernels with another plan of the same graph.
  Program release() && { return std::move(program_); }
  const StepPlan& plan() const { return program_.plan; }
  // Returns the exposed communication of the latest run: seconds for which lane compute waited for
  // lane communicate. Nothing if the run was a replay, which cannot be measured.
  std::optional<double> exposed_seconds() const { return exposed_; }
  // Returns why steps are enqueued instead of recorded: the device's message when recording failed.
  // Empty: recording has not failed.
  const std::string& why_not_recorded() const { return why_not_recorded_; }
  // Returns the highest end in the arena of an operand or workspace given to a kernel or a copy.
  std::size_t measured_peak_bytes() const { return measured_peak_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Stamps {
    Clock::time_point start, end;
  };
  // A step with all its addresses. At most one of kernel, copy and file is set; with none, there is
  // nothing to do, as for an Offload of an input.
  struct Issue {
    Stream* stream = nullptr;
    std::vector<Event*> waits;
    std::vector<Event*> exchanges;  // of lane communicate, for which a compute step waits
    std::size_t exposed_wait = 0;   // index in exposed_waits_ if exchanges is not empty
    Event* done = nullptr;          // nullptr: no step waits for it
    Kernel* kernel = nullptr;
    NodeId node{};  // of the kernel
    Lane lane{};    // of the stream
    Operands operands;
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
    std::optional<std::size_t> input;  // copied from this input of the run instead of `from`
    std::size_t arena_end = 0;         // of the operands that lie in the arena
    // Set if the step writes `from` to this file, or reads `to` from it.
    const DiskFile* file = nullptr;
    std::size_t file_offset = 0;
  };
  // A recording of the step with its inputs at these addresses.
  struct Recorded {
    std::vector<const std::byte*> inputs;  // in the order of graph.inputs()
    std::unique_ptr<Recording> recording;
  };
  static constexpr std::size_t max_recordings = 4;  // feeders rotate through fewer buffers
  class Resolver;

  void check_disk() const;
  void place_results(Device& device);
  void resolve(Device& device, const Variables& variables,
               std::size_t max_compute_stream_copy_bytes);
  void check_inputs(std::span<const TensorView> inputs) const;
  Recording* recording_for(std::span<const TensorView> inputs);  // null: enqueue the step
  std::unique_ptr<Recording> record(std::span<const TensorView> inputs);
  // Calls start(), which enqueues, then waits for all streams; throws the first error of either.
  void complete(const std::function<void()>& start);
  // Whether a run measures exposed communication; a run does not while it is being recorded.
  enum class Waits : std::uint8_t { measured, unseen };
  void enqueue_all(std::span<const TensorView> inputs, Stamps* stamps, Waits waits);
  void enqueue_waits(const Issue& issue, Waits waits);
  void enqueue(const Issue& issue, std::span<const TensorView> inputs);
  // Enqueues a step and adds the step's name to its error. stamps: receives the step's time, or
  // null.
  void enqueue_named(std::size_t step, std::span<const TensorView> inputs, Stamps* stamps);
  void synchronize();
  double sum_of_exposed() const;

  Program program_;
  Device* device_;
  bool records_;  // false once the device has declined or failed to record
  bool must_record_exchange_;
  const DiskFile* disk_;
  bool waits_for_each_;
  std::string why_not_recorded_;
  bool warm_ = false;  // a run has succeeded: libraries have done their lazy loading
  std::span<std::byte> arena_, host_arena_;
  Buffer own_host_arena_, result_bytes_;
  std::vector<TensorView> results_;
  std::vector<Issue> issues_;  // by StepId
  std::vector<Stamps> stamps_;
  Clock::time_point begin_;            // of a step whose waits are measured
  std::vector<Stamps> exposed_waits_;  // each wait of lane compute for lane communicate
  std::optional<double> exposed_;
  std::unique_ptr<MemoryWatch> watch_;  // null unless options.verify
  std::vector<NodeObserver*> observers_;
  std::size_t measured_peak_ = 0;
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<Recorded> recorded_;
  std::vector<Stream*> used_streams_;  // existing streams of streams_, compute first
  // Last member: streams stop before everything else is destroyed.
  std::array<std::unique_ptr<Stream>, lane_count> streams_;
};

}  // namespace cnn
