#include "bench/session/out_of_memory.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "runtime/liveness.h"
#include "runtime/memory_plan.h"

namespace cnn::bench {
namespace {

// Returns the tensor for which memory runs out, in the order of the step. Returns the largest one
// if the arena cannot hold even that: the step's first tensor would be an uninformative scalar.
TensorId first_beyond(const StepPlan& plan, std::size_t arena_bytes) {
  const std::vector<LiveInterval> intervals = live_intervals(*plan.graph, plan.schedule);
  const auto bytes_of = [&](const LiveInterval& interval) {
    return aligned(plan.graph->info(interval.tensor).desc.bytes());
  };
  const LiveInterval& largest = *std::ranges::max_element(intervals, {}, bytes_of);
  if (bytes_of(largest) > arena_bytes) {
    return largest.tensor;
  }
  std::vector<std::size_t> leaving(plan.schedule.steps.size() + 1);  // bytes, by step
  for (const LiveInterval& interval : intervals) {
    leaving[index_of(interval.last) + 1] += bytes_of(interval);
  }
  std::size_t live = 0, left = 0;
  for (const LiveInterval& interval : intervals) {  // in order of their start
    for (; left <= index_of(interval.first); ++left) {
      live -= leaving[left];
    }
    live += bytes_of(interval);
    if (live > arena_bytes) {
      return interval.tensor;
    }
  }
  return largest.tensor;
}

std::string_view tensorflow_name(DataType type) {
  switch (type) {
    case DataType::f16:
      return "half";
    case DataType::bf16:
      return "bfloat16";
    case DataType::i32:
      return "int32";
    case DataType::u8:
      return "uint8";
    case DataType::f32:
      break;
  }
  return "float";
}

}  // namespace

std::string tensorflow_oom_line(const StepPlan& plan, std::size_t arena_bytes, bool on_gpu) {
  const TensorDesc& desc = plan.graph->info(first_beyond(plan, arena_bytes)).desc;
  return fmt::format(
      "Resource exhausted: OOM when allocating tensor with shape[{}] and type {} on "
      "/job:localhost/replica:0/task:0/device:{}:0 by allocator {}",
      fmt::join(desc.shape.begin(), desc.shape.end(), ","), tensorflow_name(desc.type),
      on_gpu ? "GPU" : "CPU", on_gpu ? "GPU_0_bfc" : "cpu");
}

}  // namespace cnn::bench
