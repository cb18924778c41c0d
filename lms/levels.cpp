#include "lms/levels.h"

#include <algorithm>
#include <optional>
#include <variant>

namespace cnn::lms {
namespace {

constexpr std::size_t word_bits = 64;

}  // namespace

Levels::Levels(const Graph& graph, const Schedule& schedule)
    : graph_(graph),
      schedule_(schedule),
      readers_(graph.nodes().size()),
      step_(graph.nodes().size()) {
  for (std::uint32_t n = 0; n < graph.nodes().size(); ++n) {
    add(NodeId{n});
  }
  for (std::uint32_t s = 0; s < schedule.steps.size(); ++s) {
    if (const auto* compute = std::get_if<Compute>(&schedule.steps[s].action)) {
      step_[index_of(compute->node)] = StepId{s};
    }
  }
}

void Levels::add(NodeId node) {
  Set needs(graph_.nodes().size() / word_bits + 1);
  std::size_t level = 0;
  for (const TensorId input : graph_.nodes()[index_of(node)].inputs) {
    const std::optional<NodeId> producer = graph_.producer(input);
    if (!producer) {
      continue;
    }
    level = std::max(level, of(*producer) + 1);
    std::vector<NodeId>& readers = readers_[index_of(*producer)];
    if (readers.empty() || readers.back() != node) {
      readers.push_back(node);
    }
    std::ranges::transform(needs, needs_[index_of(*producer)], needs.begin(), std::bit_or{});
    needs[index_of(*producer) / word_bits] |= std::uint64_t{1} << index_of(*producer) % word_bits;
  }
  level_.push_back(level);
  needs_.push_back(std::move(needs));
  at_.resize(std::max(at_.size(), level + 1));
  at_[level].push_back(node);
}

std::size_t Levels::edges() const {
  std::size_t edges = 0;
  for (const std::vector<NodeId>& readers : readers_) {
    edges += readers.size();
  }
  return edges;
}

bool Levels::reaches(NodeId from, NodeId to) const {
  const std::uint64_t word = needs_[index_of(to)][index_of(from) / word_bits];
  return (word >> index_of(from) % word_bits & 1) != 0;
}

NodeId Levels::node(StepId step) const {
  return std::get<Compute>(schedule_.steps[index_of(step)].action).node;
}

std::string op_text(const Graph& graph, NodeId node) {
  const Node& made = graph.nodes()[index_of(node)];
  return made.outputs.empty() ? std::string(made.op->name())
                              : graph.info(made.outputs.front()).name;
}

std::string tensor_text(const Graph& graph, TensorId tensor) {
  std::size_t number = 0;
  if (const std::optional<NodeId> producer = graph.producer(tensor)) {
    const auto& outputs = graph.nodes()[index_of(*producer)].outputs;
    number = static_cast<std::size_t>(std::ranges::find(outputs, tensor) - outputs.begin());
  }
  return graph.info(tensor).name + ":" + std::to_string(number);
}

}  // namespace cnn::lms
