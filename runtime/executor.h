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
#include "runtime/kernel.h"
#include "runtime/memory_watch.h"
#include "runtime/node_observer.h"
#include "runtime/program.h"
#include "runtime/timeline.h"
#include "runtime/variables.h"

namespace cnn {

struct ExecutorOptions {
  // Where the device can: record what a step enqueues, from the second run on, and replay it. A
  // step that cannot be recorded is enqueued in every run.
  bool record = true;
  // Wait for each step of the plan before the next is enqueued, and record nothing: then an error
  // of the device names the step that made it. Slow.
  bool wait_for_each = false;
  // Wait for each step, and let a MemoryWatch look after it: a tensor that is read when its bytes
  // are free is full of NaNs, one that comes back changed from the host is an error. Very slow.
  bool verify = false;
  // A lane of copies that moves at most so many bytes in a step has no stream of its own: copying
  // them behind and before the kernels costs less than handing them to another stream and back.
  std::size_t copies_beside_compute = std::size_t{64} << 10U;
  // Where swapped tensors lie on the host: memory of Device::allocate_host, at least
  // plan.memory.host_bytes, 64-byte aligned; may be shared like the arena. Empty: memory of its
  // own.
  std::span<std::byte> host_arena = {};
};

// Issues a program's steps on its lanes, step after step of training. Operands are resolved once,
// here; run() allocates nothing and synchronises with the host once, at its end.
class Executor {
 public:
  // arena: device bytes, at least program.plan.memory.device_bytes, 64-byte aligned; may be shared
  // with another executor that does not run at the same time. All references must outlive the
  // executor. Throws if an arena is too small or a variable is missing or described differently.
  Executor(Program program, Device& device, Variables& variables, std::span<std::byte> arena,
           ExecutorOptions options = {});
  Executor(Executor&&) = default;

  // inputs: host tensors in the order of graph.inputs(), best in memory of Device::allocate_host at
  // the same few addresses run after run. Returns when the results are on the host. Throws the
  // error of the first kernel or copy that failed, with the step's name where it could not be
  // enqueued; results are undefined then.
  void run(std::span<const TensorView> inputs);
  // The same step with the time of every step taken, never recorded; slower.
  Timeline profile(std::span<const TensorView> inputs);

  // Tells the observer, which must outlive the executor, of every node from the next run on;
  // observers are told in the order in which they came. Steps are no longer recorded: a replay
  // would pass the observers by.
  void observe(NodeObserver& observer);

  // Host copies of the graph's outputs, in the order of graph.outputs(); overwritten by every run.
  std::span<const TensorView> results() const { return results_; }
  // Ends this executor: another may run the same kernels, by another plan of the same graph.
  Program release() && { return std::move(program_); }
  const StepPlan& plan() const { return program_.plan; }
  // Seconds for which lane compute stood still in the latest run, since what it needed of lane
  // communicate was not done yet. Nothing if the run was a replay: nobody sees inside that.
  std::optional<double> exposed_seconds() const { return exposed_; }
  // Why steps are enqueued though they should be recorded: what the device said when it failed to.
  // Empty: it has not failed.
  const std::string& why_not_recorded() const { return why_not_recorded_; }
  // The highest end of an operand or workspace in the arena that was handed to a kernel or a copy.
  std::size_t measured_peak_bytes() const { return measured_peak_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Stamps {
    Clock::time_point start, end;
  };
  // A step with all its addresses. Exactly one of kernel and copy is set, or none: then there is
  // nothing to do, as for an Offload of an input.
  struct Issue {
    Stream* stream = nullptr;
    std::vector<Event*> waits;
    std::vector<Event*> exchanges;  // of lane communicate, that a step of compute waits for
    std::size_t stood = 0;          // then in exposed_waits_
    Event* done = nullptr;          // nullptr: no step waits for it
    Kernel* kernel = nullptr;
    NodeId node{};  // of the kernel
    Lane lane{};    // of the stream
    Operands operands;
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
    std::optional<std::size_t> input;  // copied from this input of the run, instead of `from`
    std::size_t arena_end = 0;         // of the operands that lie in the arena
  };
  // A step recorded with its inputs at these addresses.
  struct Recorded {
    std::vector<const std::byte*> inputs;  // in the order of graph.inputs()
    std::unique_ptr<Recording> recording;
  };
  static constexpr std::size_t most_recordings = 4;  // feeders go round in fewer buffers
  class Resolver;

  void place_results(Device& device);
  void resolve(Device& device, const Variables& variables, std::size_t copies_beside_compute);
  void check_inputs(std::span<const TensorView> inputs) const;
  Recording* recording_for(std::span<const TensorView> inputs);  // null: enqueue the step
  std::unique_ptr<Recording> record(std::span<const TensorView> inputs);
  // Calls start, which enqueues, then waits for all streams; throws the first error of either.
  void complete(const std::function<void()>& start);
  // How a run treats the time that lane compute stands still: not while it is recorded.
  enum class Waits : std::uint8_t { measured, unseen };
  void enqueue_all(std::span<const TensorView> inputs, Stamps* stamps, Waits waits);
  void enqueue_waits(const Issue& issue, Waits waits);
  void enqueue(const Issue& issue, std::span<const TensorView> inputs);
  // The same, its error with the step's name. stamps: null, or where the step's time goes.
  void enqueue_named(std::size_t step, std::span<const TensorView> inputs, Stamps* stamps);
  void synchronize();
  double sum_of_exposed() const;

  Program program_;
  Device* device_;
  bool records_;  // still; false once the device has declined or failed
  bool waits_for_each_;
  std::string why_not_recorded_;
  bool warm_ = false;  // a run has ended well: libraries have loaded what they load late
  std::span<std::byte> arena_, host_arena_;
  Buffer own_host_arena_, result_bytes_;
  std::vector<TensorView> results_;
  std::vector<Issue> issues_;  // by StepId
  std::vector<Stamps> stamps_;
  std::vector<Stamps> exposed_waits_;  // each time that compute waits for communicate
  std::optional<double> exposed_;
  std::unique_ptr<MemoryWatch> watch_;  // null unless it verifies
  std::vector<NodeObserver*> observers_;
  std::size_t measured_peak_ = 0;
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<Recorded> recorded_;
  std::vector<Stream*> used_streams_;  // those of streams_ that exist: compute first, if it does
  std::array<std::unique_ptr<Stream>, lane_count> streams_;  // last: they stop before all else goes
};

}  // namespace cnn
