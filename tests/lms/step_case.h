#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "lms/policy.h"
#include "runtime/graph.h"
#include "runtime/memory_plan.h"
#include "runtime/program.h"
#include "runtime/schedule.h"

// A training step of ops that mix their inputs, and all that a policy asks about it.
namespace cnn::tests {

struct StepCase {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  std::vector<KernelSpec> specs;
  Schedule schedule;
  StepId backward{};
  Costs costs;
  lms::Budget budget{.device = 1U << 30U, .host = 1U << 30U};
  std::size_t variable_bytes = 0;
  lms::Options options;

  // Images in nhwc, 64 bytes for each channel of two: the op knows no layouts.
  static TensorDesc image(std::int64_t channels) {
    return {.shape = {2, channels, 1, 8}, .layout = Layout::nhwc};
  }
  Value images(std::int64_t channels = 1) const;
  Value weights(std::int64_t channels) const;
  std::vector<Value> make_all(const std::string& op, const std::vector<Value>& in,
                              std::vector<TensorDesc> out, bool in_place = false) const;
  // Appends a node whose output has the size of its first input.
  Value make(const std::string& op, const std::vector<Value>& in, bool in_place = false) const;
  Value make_image(const std::string& op, const std::vector<Value>& in,
                   std::int64_t channels) const;

  // Call when the graph is complete: `first` is the first value of the backward pass. workspace:
  // bytes of every node.
  void settle(Value first, std::size_t workspace = 0);

  lms::Request request() const;
  PeakMemory peak(const Schedule& of) const;
  // Plans it, which verifies it, with all that stands in the schedule.
  StepPlan planned(const Schedule& of) const;
  // Returns the values that two steps leave behind.
  std::vector<float> outcome(const Schedule& of) const;
};

// "mix#0", "offload mix#0", "fetch mix#0 <2": each step with the steps that it waits for.
std::vector<std::string> texts(const Graph& graph, const Schedule& schedule);

// The notes of a level up to this one, as lines.
std::vector<std::string> lines(const lms::Plan& plan, int level = 0);

}  // namespace cnn::tests
