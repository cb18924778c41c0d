#include "bench/ranks/rank_consistency.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <sstream>
#include <string_view>
#include <variant>
#include <vector>

#include "allreduce/all_gather.h"
#include "layers/all_reduce.h"
#include "layers/initializer.h"
#include "runtime/error.h"
#include "runtime/memory_plan.h"

namespace cnn::bench {
namespace {

constexpr std::array<std::string_view, 19> of_one_host{
    "data_dir",          "train_dir",         "eval_dir",
    "result_json",       "trace_file",        "benchmark_log_dir",
    "benchmark_test_id", "num_intra_threads", "graph_file",
    "html_report",       "plan_cache",        "tfprof_file",
    "num_inter_threads", "lms_plan_file",     "lms_plan_out",
    "lms_trace",         "output_dir",        "comm_calibration_file",
    "hash_file"};

// Texts with equal digests count as equal.
struct Digest {
  std::uint64_t hash = 0;
  std::size_t size = 0;
  bool operator==(const Digest&) const = default;
};

Digest digest_of(std::string_view text) {
  return {.hash = layers::fnv1a(text), .size = text.size()};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::string description(const RunIdentity& identity, std::string_view program) {
  std::string text = fmt::format("{} {} {}\n", program, identity.version,
                                 identity.commit.value_or("of unknown commit"));
  for (const auto& [name, value] : identity.config.items()) {
    if (std::ranges::find(of_one_host, name) == of_one_host.end()) {
      text += fmt::format("--{}={}\n", name, value.dump());
    }
  }
  return text;
}

std::string exchange_plan(const StepPlan& plan, bool with_places) {
  const Graph& graph = *plan.graph;
  const BlockIndex places(graph, plan.memory);
  std::string text;
  for (std::size_t s = 0; s < plan.schedule.steps.size(); ++s) {
    const auto* const compute = std::get_if<Compute>(&plan.schedule.steps[s].action);
    const Node* const node = compute == nullptr ? nullptr : &graph.nodes()[index_of(compute->node)];
    const auto* const reduction =
        node == nullptr ? nullptr : dynamic_cast<const layers::AllReduce*>(node->op.get());
    if (reduction == nullptr) {
      continue;
    }
    text += fmt::format("bucket {} of {} gradients", reduction->bucket, node->outputs.size());
    for (const TensorId output : node->outputs) {
      const TensorDesc& desc = graph.info(output).desc;
      text += fmt::format(", {} of {} elements", to_string(desc), desc.shape.elements());
      const Block* const block = places.tensor(output, StepId{static_cast<std::uint32_t>(s)});
      if (with_places && block != nullptr) {
        text += fmt::format(" at {}", block->offset + graph.offset_in_root(output));
      }
    }
    text += '\n';
  }
  return text;
}

std::string first_difference(std::span<const std::string> of_ranks) {
  const std::vector<std::string> first = lines_of(of_ranks.front());
  for (std::size_t rank = 1; rank < of_ranks.size(); ++rank) {
    const std::vector<std::string> other = lines_of(of_ranks[rank]);
    for (std::size_t line = 0; line < std::max(first.size(), other.size()); ++line) {
      const auto at = [&](const std::vector<std::string>& lines) {
        return line < lines.size() ? lines[line] : std::string("nothing more");
      };
      if (at(first) != at(other)) {
        return fmt::format(
            "rank 0 has {}, rank {} has {}: start all ranks with the same program "
            "and the same flags, on processors of one kind",
            at(first), rank, at(other));
      }
    }
  }
  return {};
}

// Sends whole texts only if they differ, which ends the run.
void check_equal_on_all_ranks(allreduce::World& world, const std::string& text) {
  const std::vector<Digest> digests = allreduce::all_gather(world, digest_of(text));
  if (std::ranges::count(digests, digests.front()) == world.ranks()) {
    return;
  }
  const std::string difference = first_difference(allreduce::all_gather(world, text));
  check(difference.empty(), difference);
}

}  // namespace cnn::bench
