#include "layers/conv.h"

#include <array>
#include <memory>
#include <utility>

#include "layers/cuda/conv_steps.h"
#include "layers/cuda/cudnn/libraries.h"
#include "layers/cuda/cudnn/library_rows.h"
#include "layers/cuda/cudnn/plan_runner.h"
#include "runtime/error.h"

namespace cnn::layers::cuda {
namespace {

Libraries::Build build_of(const ConvGraph& graph) {
  return [graph] { return operations_of(graph); };
}

FindWorkspace find_in(Libraries& libraries) {
  return [&](const ConvGraph& graph) -> std::optional<std::size_t> {
    const std::optional<Choice> choice = libraries.choose(key_of(graph), build_of(graph));
    return choice ? std::optional(choice->workspace) : std::nullopt;
  };
}

// Runs the cuDNN engine that `Libraries` has chosen, on its device.
class CudnnEngine final : public ConvEngine {
 public:
  CudnnEngine(std::shared_ptr<Libraries> libraries, const ConvGraph& graph)
      : runner_(std::move(libraries), key_of(graph), build_of(graph)), has_bias_(graph.bias) {}

  void run(Stream& stream, const ConvOperands& o) override {
    const std::array<void*, 4> with_bias{o.x, o.w, o.bias, o.y};
    const std::array<void*, 3> without{o.x, o.w, o.y};
    runner_.run(stream, has_bias_ ? std::span<void* const>(with_bias) : without, o.workspace);
  }

 private:
  PlanRunner runner_;
  bool has_bias_;
};

template <class Op>
void add_row(KernelTable& table, const std::shared_ptr<Libraries>& libraries) {
  const auto steps = [libraries](const Op& op, const Signature& request) {
    return steps_of(op, request, find_in(*libraries));
  };
  table.add<Op>(
      [steps](const Op& op, const Signature& request) -> std::optional<KernelSpec> {
        std::optional<ConvSteps> found = steps(op, request);
        return found ? std::optional(std::move(found->spec)) : std::nullopt;
      },
      [steps, libraries](const Op& op, const Signature& signature) {
        std::optional<ConvSteps> found = steps(op, signature);
        check(found.has_value(), "a convolution is made that was not described");
        auto engine = std::make_unique<CudnnEngine>(libraries, found->graph);
        return make_kernel(*std::move(found), std::move(engine));
      },
      Provider::cudnn);
}

}  // namespace

void add_conv_rows(KernelTable& table, const std::shared_ptr<Libraries>& libraries) {
  add_row<Conv2d>(table, libraries);
  add_row<Conv2dBackwardData>(table, libraries);
  add_row<Conv2dBackwardWeights>(table, libraries);
}

}  // namespace cnn::layers::cuda
