#include "lms/live_bytes.h"

#include <map>
#include <utility>

#include "lms/policy.h"
#include "runtime/memory_plan.h"

namespace cnn::lms {

std::vector<std::size_t> live_bytes(const Request& request) {
  const MemoryPlan memory = plan_memory(request.graph, request.schedule, workspaces_of(request));
  std::vector<std::size_t> live(request.schedule.steps.size());
  std::map<std::pair<std::size_t, StepId>, int> ends;  // number of blocks by offset
  for (const Block& block : memory.blocks) {
    ends[{block.offset, block.last}] += block.bytes > 0 ? 1 : 0;
  }
  for (const Block& block : memory.blocks) {
    if (block.bytes == 0) {
      continue;
    }
    for (std::size_t s = index_of(block.first); s <= index_of(block.last); ++s) {
      live[s] += aligned(block.bytes);
    }
    // A block that begins where another ends, at one offset, has taken over its bytes.
    const int itself = block.first == block.last ? 1 : 0;
    if (ends[{block.offset, block.first}] > itself) {
      live[index_of(block.first)] -= aligned(block.bytes);
    }
  }
  return live;
}

std::vector<std::size_t> workspaces_of(const Request& request) {
  std::vector<std::size_t> bytes;
  bytes.reserve(request.specs.size());
  for (const KernelSpec& spec : request.specs) {
    bytes.push_back(spec.workspace);
  }
  return bytes;
}

bool fits(const Request& request, const Schedule& schedule) {
  const MemoryPlan memory = plan_memory(request.graph, schedule, workspaces_of(request));
  return memory.device_bytes <= request.budget.device &&
         memory.host_bytes <= request.budget.swap_bytes();
}

StepId compute_before(const Schedule& schedule, StepId step) {
  for (std::size_t s = index_of(step); s-- > 0;) {
    if (schedule.steps[s].lane == Lane::compute) {
      return StepId{static_cast<std::uint32_t>(s)};
    }
  }
  return step;
}

}  // namespace cnn::lms
