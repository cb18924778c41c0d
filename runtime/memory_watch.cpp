#include "runtime/memory_watch.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/error.h"
#include "runtime/program.h"

namespace cnn {
namespace {

constexpr std::byte pattern{0xFF};
constexpr std::size_t pattern_bytes = std::size_t{1} << 20U;

}  // namespace

MemoryWatch::MemoryWatch(const StepPlan& plan, Device& device, std::span<std::byte> arena,
                         std::span<std::byte> host_arena)
    : arena_(arena.first(plan.memory.device_bytes)),
      host_arena_(host_arena.first(plan.memory.host_bytes)),
      freed_(freed_of(plan.memory.blocks, plan.schedule.steps.size())),
      host_freed_(freed_of(plan.memory.host_blocks, plan.schedule.steps.size())),
      moved_(plan.schedule.steps.size()),
      pattern_(device.allocate_host(pattern_bytes)),
      checksums_(plan.graph->tensors().size()) {
  std::fill_n(pattern_.data(), pattern_bytes, pattern);
  find_moved(plan);
  std::size_t most = 0;
  for (const std::optional<Moved>& moved : moved_) {
    most = moved ? std::max(most, moved->bytes.size()) : most;
  }
  scratch_ = device.allocate_host(most);
}

// Offloads of variables are results.
void MemoryWatch::find_moved(const StepPlan& plan) {
  const Graph& graph = *plan.graph;
  const BlockIndex index(graph, plan.memory);
  for (std::size_t s = 0; s < plan.schedule.steps.size(); ++s) {
    const Action& action = plan.schedule.steps[s].action;
    const auto* offload = std::get_if<Offload>(&action);
    const auto* fetch = std::get_if<Fetch>(&action);
    if (offload == nullptr && fetch == nullptr) {
      continue;
    }
    const TensorId tensor = offload != nullptr ? offload->tensor : fetch->tensor;
    if (const Block* block = index.tensor(tensor, StepId{static_cast<std::uint32_t>(s)})) {
      const TensorInfo& info = graph.info(tensor);
      moved_[s] = Moved{.tensor = tensor,
                        .name = info.name,
                        .leaves = offload != nullptr,
                        .bytes = arena_.subspan(block->offset, info.desc.bytes())};
    }
  }
}

// Returns the bytes of each block at its end, without bytes that another block then holds: an
// output in the place of an input.
MemoryWatch::Freed MemoryWatch::freed_of(std::span<const Block> blocks, std::size_t steps) {
  std::vector<const Block*> by_offset;
  for (const Block& block : blocks) {
    by_offset.push_back(&block);
  }
  std::ranges::sort(by_offset, {}, &Block::offset);
  Freed freed(steps);
  for (const Block* ending : by_offset) {
    Range rest{.begin = ending->offset, .end = ending->offset + ending->bytes};
    for (const Block* other : by_offset) {
      const std::size_t other_end = other->offset + other->bytes;
      const bool held = other->first <= ending->last && ending->last < other->last;
      if (!held || other_end <= rest.begin || rest.end <= other->offset) {
        continue;
      }
      freed[index_of(ending->last)].push_back({.begin = rest.begin, .end = other->offset});
      rest.begin = std::min(other_end, rest.end);
    }
    freed[index_of(ending->last)].push_back(rest);
  }
  for (std::vector<Range>& ranges : freed) {
    std::erase_if(ranges, [](const Range& range) { return range.begin >= range.end; });
  }
  return freed;
}

void MemoryWatch::begin(Stream& stream) {
  std::ranges::fill(checksums_, std::nullopt);
  std::ranges::fill(host_arena_, pattern);
  fill({.begin = 0, .end = arena_.size()}, stream);
  stream.synchronize();
}

void MemoryWatch::after(StepId step, Stream& stream) {
  if (const std::optional<Moved>& moved = moved_[index_of(step)]) {
    std::optional<std::uint64_t>& left = checksums_[index_of(moved->tensor)];
    if (moved->leaves) {
      left = checksum(moved->bytes, stream);
    } else if (left && *left != checksum(moved->bytes, stream)) {
      throw Error(moved->name +
                  " came back from the host with other bytes than had left, in step " +
                  std::to_string(index_of(step)));
    }
  }
  for (const Range& range : freed_[index_of(step)]) {
    fill(range, stream);
  }
  for (const Range& range : host_freed_[index_of(step)]) {
    std::ranges::fill(host_arena_.subspan(range.begin, range.end - range.begin), pattern);
  }
  stream.synchronize();
}

// Fills by copies, since the host may be unable to write device memory.
void MemoryWatch::fill(Range range, Stream& stream) {
  for (std::size_t at = range.begin; at < range.end; at += pattern_bytes) {
    stream.copy(arena_.data() + at, pattern_.data(), std::min(pattern_bytes, range.end - at));
  }
}

std::uint64_t MemoryWatch::checksum(std::span<const std::byte> bytes, Stream& stream) {
  stream.copy(scratch_.data(), bytes.data(), bytes.size());
  stream.synchronize();
  return std::hash<std::string_view>{}(
      {reinterpret_cast<const char*>(scratch_.data()), bytes.size()});
}

}  // namespace cnn
