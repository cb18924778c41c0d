#include "layers/conv.h"

#include <array>
#include <memory>
#include <utility>

#include "layers/cuda/conv_steps.h"
#include "layers/cuda/cudnn_conv.h"
#include "layers/cuda/libraries.h"
#include "layers/cuda/library_rows.h"
#include "runtime/error.h"

namespace cnn::layers::cuda {
namespace {

std::optional<Choice> choose(Libraries& libraries, const ConvGraph& graph) {
  return libraries.choose(key_of(graph), [&](OperationGraph& into) { build(graph, into); });
}

FindWorkspace find_in(Libraries& libraries) {
  return [&](const ConvGraph& graph) -> std::optional<std::size_t> {
    const std::optional<Choice> choice = choose(libraries, graph);
    return choice ? std::optional(choice->workspace) : std::nullopt;
  };
}

// The chosen engine of cuDNN on the libraries' device.
class CudnnEngine final : public ConvEngine {
 public:
  CudnnEngine(std::shared_ptr<Libraries> libraries, const ConvGraph& graph)
      : libraries_(std::move(libraries)), graph_(libraries_->target()) {
    const std::optional<Choice> choice = choose(*libraries_, graph);
    check(choice.has_value(), "cuDNN has no engine for " + key_of(graph));
    build(graph, graph_);
    plan_ = std::make_unique<Plan>(graph_, *choice, libraries_->target());
    check(plan_->workspace() <= choice->workspace,
          "cuDNN wants more workspace for " + key_of(graph) + " than it said when it was planned");
    has_bias_ = graph.bias;
  }

  void run(Stream& stream, const ConvOperands& o) override {
    const cudnnHandle_t handle = libraries_->cudnn(stream);
    const std::array<void*, 4> with_bias{o.x, o.w, o.bias, o.y};
    const std::array<void*, 3> without{o.x, o.w, o.y};
    plan_->run(handle, has_bias_ ? std::span<void* const>(with_bias) : without, o.workspace);
  }

 private:
  std::shared_ptr<Libraries> libraries_;
  OperationGraph graph_;  // the plan refers to it
  std::unique_ptr<Plan> plan_;
  bool has_bias_ = false;
};

template <class Op>
void add_row(KernelTable& table, const std::shared_ptr<Libraries>& libraries) {
  const auto steps = [libraries](const Op& op, const Signature& asked) {
    return steps_of(op, asked, find_in(*libraries));
  };
  table.add<Op>(
      [steps](const Op& op, const Signature& asked) -> std::optional<KernelSpec> {
        std::optional<ConvSteps> found = steps(op, asked);
        return found ? std::optional(std::move(found->spec)) : std::nullopt;
      },
      [steps, libraries](const Op& op, const Signature& signature) {
        std::optional<ConvSteps> found = steps(op, signature);
        check(found.has_value(), "a convolution is made that was not described");
        auto engine = std::make_unique<CudnnEngine>(libraries, found->graph);
        return make_kernel(*std::move(found), std::move(engine));
      });
}

}  // namespace

void add_conv_rows(KernelTable& table, const std::shared_ptr<Libraries>& libraries) {
  add_row<Conv2d>(table, libraries);
  add_row<Conv2dBackwardData>(table, libraries);
  add_row<Conv2dBackwardWeights>(table, libraries);
}

}  // namespace cnn::layers::cuda
