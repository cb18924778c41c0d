#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/passes/pipeline.h"
#include "runtime/cpu/device.h"
#include "runtime/executor.h"
#include "runtime/graph.h"
#include "runtime/kernel.h"
#include "runtime/variables.h"
#include "tests/models/golden.h"

namespace cnn::tests {

// The kernels that compute, and the layout of images they like.
struct Engine {
  KernelTable kernels;
  Layout layout = Layout::nchw;  // inside the network
  Layout images = Layout::nchw;  // of the input
  layers::Fusion fusion = layers::Fusion::none;
};
Engine reference_engine();
Engine cpu_engine();

// A golden network, made by the program's pipeline of passes and fed by the formula. Outputs:
// "base_loss", "logits" and in training "l2" and the gradients of the base loss under the
// parameters' names.
class GoldenRun {
 public:
  GoldenRun(const Golden& golden, const Engine& engine);

  void step();

  std::span<const float> output(std::string_view name) const;  // of the last step
  // Values now, in the order of checkpoints. parameters() and variables() list the names.
  std::vector<float> variable(std::string_view name);
  const std::vector<std::string>& parameters() const { return parameters_; }
  std::vector<std::string> variables() const;
  // The gradient of the total loss: the weight decay of a parameter's starting value is in it.
  std::vector<float> gradient(std::string_view parameter) const;
  double total_loss() const;

 private:
  layers::PipelineResult build();
  layers::TrainingOptions training_options();
  std::unique_ptr<Executor> executor_of(StepPlan plan);
  void load();
  void move(const TensorView& from, const TensorView& to);
  std::vector<TensorView> inputs(const Graph& graph);

  const Golden& golden_;
  const Engine& engine_;
  CpuDevice device_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::string> parameters_;
  std::optional<Variables> variables_;
  Buffer storage_;
  std::vector<Buffer> arenas_;  // of the step, and of its prologue if it has one
  std::vector<float> images_;
  std::vector<std::int32_t> labels_;
  std::int32_t step_ = 0;
  float rate_ = 0;
  std::vector<TensorView> inputs_;
  std::unique_ptr<Executor> executor_;
};

double norm(std::span<const float> values);

}  // namespace cnn::tests
