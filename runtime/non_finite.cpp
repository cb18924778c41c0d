#include "runtime/non_finite.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "runtime/access.h"
#include "runtime/memory_plan.h"

namespace cnn {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{4} << 20U;

// Counts numbers whose exponent bits are all set, in words of one type.
template <class Word>
std::int64_t count_words(const std::byte* data, std::size_t bytes, Word exponent) {
  const std::span words(reinterpret_cast<const Word*>(data), bytes / sizeof(Word));
  return std::ranges::count_if(words, [&](Word word) { return (word & exponent) == exponent; });
}

std::int64_t count_non_finite(const std::byte* data, std::size_t bytes, DataType type) {
  return type == DataType::f32   ? count_words<std::uint32_t>(data, bytes, 0x7f800000U)
         : type == DataType::f16 ? count_words<std::uint16_t>(data, bytes, 0x7c00U)
                                 : count_words<std::uint16_t>(data, bytes, 0x7f80U);
}

bool is_real(DataType type) { return type != DataType::i32 && type != DataType::u8; }

// Finds the tensors that a step has left in memory.
class SurvivingTensors {
 public:
  explicit SurvivingTensors(const StepMemory& memory)
      : memory_(memory), graph_(*memory.plan.graph), blocks_(graph_, memory.plan.memory) {
    changed_.resize(graph_.tensors().size());
    for (const Step& step : memory.plan.schedule.steps) {
      for_each_access(graph_, step.action, [&](const Access& access) {
        changed_[index_of(access.tensor)] =
            changed_[index_of(access.tensor)] || access.kind == Access::Kind::mutate;
      });
    }
  }

  // Returns the operand of a step if its bytes have not changed since.
  std::optional<TensorView> operand(TensorId id, StepId step) const {
    const TensorInfo& info = graph_.info(id);
    if (changed_[index_of(id)]) {
      return std::nullopt;
    }
    if (is_persistent(info.role)) {
      return memory_.variables.view(info);
    }
    const Block* const block = blocks_.tensor(id, step);
    if (block == nullptr || is_overwritten(*block, step)) {
      return std::nullopt;
    }
    return TensorView{.desc = info.desc,
                      .data = memory_.arena.data() + block->offset + graph_.offset_in_root(id)};
  }

 private:
  // Returns whether a later block of the step overlaps this one.
  bool is_overwritten(const Block& block, StepId step) const {
    return std::ranges::any_of(memory_.plan.memory.blocks, [&](const Block& other) {
      return &other != &block && other.last > step && other.first >= block.first &&
             other.offset < block.offset + block.bytes && block.offset < other.offset + other.bytes;
    });
  }

  const StepMemory& memory_;
  const Graph& graph_;
  BlockIndex blocks_;
  std::vector<bool> changed_;  // by TensorId: a node changes it in place
};

// The contiguous runs of elements that form a tensor.
struct Pieces {
  std::size_t count = 1, bytes = 0, apart = 0;
};
Pieces pieces_of(const TensorDesc& desc) {
  if (desc.pitch == 0) {
    return {.bytes = desc.bytes()};
  }
  const Shape& s = desc.shape;
  return {.count = static_cast<std::size_t>(s[0] * s[2] * s[3]),
          .bytes = static_cast<std::size_t>(s[1]) * size_of(desc.type),
          .apart = static_cast<std::size_t>(desc.pitch) * size_of(desc.type)};
}

}  // namespace

NonFiniteTensor describe_non_finite(const Graph& graph, TensorId tensor, const Action& action) {
  const TensorInfo& info = graph.info(tensor);
  NonFiniteTensor found{.name = info.name};
  if (is_persistent(info.role) || info.role == Role::input) {
    return found;
  }
  found.made_by = to_string(graph, action);
  for (const TensorId input : graph.nodes()[index_of(std::get<Compute>(action).node)].inputs) {
    if (found.variable.empty() && is_persistent(graph.info(input).role)) {
      found.variable = graph.info(input).name;
    }
  }
  return found;
}

std::int64_t count_non_finite(const TensorView& tensor) {
  if (!is_real(tensor.desc.type)) {
    return 0;
  }
  const Pieces pieces = pieces_of(tensor.desc);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < pieces.count; ++i) {
    count += count_non_finite(tensor.data + i * pieces.apart, pieces.bytes, tensor.desc.type);
  }
  return count;
}

std::string to_string(const NonFiniteTensor& tensor) {
  std::string text = tensor.name;
  if (!tensor.made_by.empty()) {
    text = "the result of " + tensor.made_by +
           (tensor.variable.empty() ? "" : " with " + tensor.variable);
  }
  return text + " (" + std::to_string(tensor.count) + " of " + std::to_string(tensor.elements) +
         " values)";
}

NonFiniteReader::NonFiniteReader(Device& device)
    : stream_(device.make_stream(Lane::compute)), chunk_(device.allocate_host(chunk_bytes)) {}

std::int64_t NonFiniteReader::count_in(const Runs& runs, DataType type) {
  const std::size_t at_once = std::max<std::size_t>(chunk_bytes / runs.apart, 1);
  std::int64_t count = 0;
  for (std::size_t done = 0; done < runs.pieces; done += at_once) {
    const std::size_t some = std::min(at_once, runs.pieces - done);
    stream_->copy(chunk_.data(), runs.first + done * runs.apart,
                  (some - 1) * runs.apart + runs.bytes);
    stream_->synchronize();
    for (std::size_t i = 0; i < some; ++i) {
      count += count_non_finite(chunk_.data() + i * runs.apart, runs.bytes, type);
    }
  }
  return count;
}

std::int64_t NonFiniteReader::count(const TensorView& tensor) {
  const TensorDesc& desc = tensor.desc;
  if (!is_real(desc.type)) {
    return 0;
  }
  if (desc.pitch > 0) {
    const Pieces pieces = pieces_of(desc);
    return count_in({.first = tensor.data,
                     .pieces = pieces.count,
                     .bytes = pieces.bytes,
                     .apart = pieces.apart},
                    desc.type);
  }
  constexpr std::size_t line = 4096;
  const std::size_t bytes = desc.bytes(), lines = bytes / line, rest = bytes % line;
  return count_in({.first = tensor.data, .pieces = lines, .bytes = line, .apart = line},
                  desc.type) +
         count_in({.first = tensor.data + lines * line,
                   .pieces = rest > 0 ? std::size_t{1} : std::size_t{0},
                   .bytes = rest,
                   .apart = line},
                  desc.type);
}

std::optional<NonFiniteTensor> first_non_finite(const StepMemory& memory, NonFiniteReader& reader) {
  const SurvivingTensors remains(memory);
  const Graph& graph = *memory.plan.graph;
  std::vector<bool> seen(graph.tensors().size());
  const std::vector<Step>& steps = memory.plan.schedule.steps;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    std::optional<NonFiniteTensor> found;
    for_each_access(graph, steps[s].action, [&](const Access& access) {
      const bool is_new =
          access.kind == Access::Kind::define || is_persistent(graph.info(access.tensor).role);
      if (found || !is_new || seen[index_of(access.tensor)]) {
        return;
      }
      seen[index_of(access.tensor)] = true;
      const std::optional<TensorView> view =
          remains.operand(access.tensor, StepId{static_cast<std::uint32_t>(s)});
      const std::int64_t count = view ? reader.count(*view) : 0;
      if (count > 0) {
        found = describe_non_finite(graph, access.tensor, steps[s].action);
        found->count = count;
        found->elements = static_cast<std::int64_t>(view->desc.bytes() / size_of(view->desc.type));
      }
    });
    if (found) {
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace cnn
