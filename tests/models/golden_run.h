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

// The kernels of a backend and the image layouts that they prefer.
struct Engine {
  KernelTable kernels;
  Layout layout = Layout::nchw;  // of activations
  Layout images = Layout::nchw;  // of the input images
  layers::Fusion fusion = layers::Fusion::none;
};
Engine reference_engine();
Engine cpu_engine();

// A golden network that the program's pass pipeline builds and the formula feeds. Its outputs are
// "base_loss", "logits" and, in training, "l2" and the gradients of the base loss under the
// parameters' names.
class GoldenRun {
 public:
  GoldenRun(const Golden& golden, const Engine& engine);

  void step();

  std::span<const float> output(std::string_view name) const;  // output of the last step
  // Returns the current values in the order of checkpoints. parameters() and variables() list the
  // names.
  std::vector<float> variable(std::string_view name);
  const std::vector<std::string>& parameters() const { return parameters_; }
  std::vector<std::string> variables() const;
  // Returns the gradient of the total loss; it includes the weight decay of the initial value.
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
  std::vector<Buffer> arenas_;  // the arenas of the step and, if there is one, of its prologue
  std::vector<float> images_;
  std::vector<std::int32_t> labels_;
  std::int32_t step_ = 0;
  float rate_ = 0;
  std::vector<TensorView> inputs_;
  std::unique_ptr<Executor> executor_;
};

double norm(std::span<const float> values);

}  // namespace cnn::tests
