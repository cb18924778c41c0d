#include "layers/fused_conv.h"

#include <memory>
#include <utility>

#include "layers/cuda/cudnn/libraries.h"
#include "layers/cuda/cudnn/library_rows.h"
#include "layers/cuda/cudnn/plan_runner.h"
#include "layers/cuda/fused_steps.h"
#include "runtime/error.h"

namespace cnn::layers::cuda {
namespace {

Libraries::Build build_of(const FusedGraph& graph) {
  return [graph] { return operations_of(graph); };
}

FindFusedWorkspace find_in(Libraries& libraries) {
  return [&](const FusedGraph& graph) -> std::optional<std::size_t> {
    const std::optional<Choice> choice = libraries.choose(key_of(graph), build_of(graph));
    return choice ? std::optional(choice->workspace) : std::nullopt;
  };
}

// Runs the cuDNN engine that `Libraries` has chosen, on its device.
class CudnnEngine final : public FusedEngine {
 public:
  CudnnEngine(std::shared_ptr<Libraries> libraries, const FusedGraph& graph)
      : runner_(std::move(libraries), key_of(graph), build_of(graph)) {}

  void run(Stream& stream, std::span<void* const> tensors, std::byte* workspace) override {
    runner_.run(stream, tensors, workspace);
  }

 private:
  PlanRunner runner_;
};

template <class Op>
void add_row(KernelTable& table, const std::shared_ptr<Libraries>& libraries) {
  table.add<Op>(
      [libraries](const Op& op, const Signature& request) -> std::optional<KernelSpec> {
        std::optional<FusedSteps> steps = steps_of(op, request, find_in(*libraries));
        return steps ? std::optional(std::move(steps->spec)) : std::nullopt;
      },
      [libraries](const Op& op, const Signature& signature) {
        std::optional<FusedSteps> steps = steps_of(op, signature, find_in(*libraries));
        check(steps.has_value(), "a fused convolution is made that was not described");
        auto engine = std::make_unique<CudnnEngine>(libraries, steps->graph);
        return make_kernel(*std::move(steps), std::move(engine));
      },
      Provider::cudnn);
}

}  // namespace

void add_fused_conv_rows(KernelTable& table, const std::shared_ptr<Libraries>& libraries) {
  add_row<FusedConv>(table, libraries);
  add_row<FusedConvBackwardWeights>(table, libraries);
  add_row<ConvBackwardDataNorm>(table, libraries);
}

}  // namespace cnn::layers::cuda
