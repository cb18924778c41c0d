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

// Helper of LMS tests: a training step of ops that mix their inputs, and the request that a policy
// gets about it.
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

  // Returns the descriptor of two nhwc images with 64 bytes per channel; the op ignores layouts.
  static TensorDesc image(std::int64_t channels) {
    return {.shape = {2, channels, 1, 8}, .layout = Layout::nhwc};
  }
  Value images(std::int64_t channels = 1) const;
  Value weights(std::int64_t channels) const;
  std::vector<Value> make_all(const std::string& op, const std::vector<Value>& in,
                              std::vector<TensorDesc> out, bool in_place = false) const;
  // The output has the size of the first input.
  Value make(const std::string& op, const std::vector<Value>& in, bool in_place = false) const;
  Value make_image(const std::string& op, const std::vector<Value>& in,
                   std::int64_t channels) const;

  // Call when the graph is complete. `first` is the first value of the backward pass; every node
  // gets `workspace` bytes.
  void settle(Value first, std::size_t workspace = 0);

  lms::Request request() const;
  PeakMemory peak(const Schedule& schedule) const;
  // Returns a verified plan of this schedule, as the executor runs it.
  StepPlan planned(const Schedule& schedule) const;
  // Returns the values that remain after two steps.
  std::vector<float> outcome(const Schedule& schedule) const;
};

// Returns each step as text with the steps it waits for: "mix#0", "offload mix#0", "fetch mix#0
// <2".
std::vector<std::string> texts(const Graph& graph, const Schedule& schedule);

// Returns the plan's notes up to this level as lines.
std::vector<std::string> lines(const lms::Plan& plan, int level = 0);

}  // namespace cnn::tests
