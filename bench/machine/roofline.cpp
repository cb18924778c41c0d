#include "bench/machine/roofline.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "bench/machine/step_costs.h"
#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/initializer.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One op with its operands in memory of its own, ready to be run again and again.
class Bench {
 public:
  Bench(const Backend& backend, const Op& op, const std::vector<TensorDesc>& in, Layout image)
      : repeats_(backend.repeats), stream_(backend.device->make_stream(Lane::compute)) {
    Signature asked{.in = in, .out = op.infer(in)};
    for (TensorDesc& desc : asked.out) {
      desc.layout = desc.shape.rank() == 4 ? image : Layout::nchw;
    }
    const std::optional<KernelSpec> spec = backend.kernels.describe(op, asked);
    check(spec.has_value(), "no kernel measures " + std::string(op.name()));
    kernel_ = backend.kernels.make(op, {.in = spec->in, .out = spec->out});
    for (const TensorDesc& desc : spec->in) {
      operands_.in.push_back(view(backend, desc));
    }
    for (const TensorDesc& desc : spec->out) {
      operands_.out.push_back(view(backend, desc));
    }
    const TensorView workspace =
        view(backend, {Shape{static_cast<std::int64_t>(spec->workspace)}, DataType::u8});
    operands_.workspace = {workspace.data, spec->workspace};
  }

  // The best seconds of one run within a time budget, after a warm-up.
  double best_seconds(double budget_seconds) {
    run();
    const Clock::time_point start = Clock::now();
    double best = run();
    while (seconds_since(start) < budget_seconds) {
      best = std::min(best, run());
    }
    return best;
  }

 private:
  double run() {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < repeats_; ++i) {
      kernel_->run(*stream_, operands_);
    }
    stream_->synchronize();
    return seconds_since(start) / repeats_;
  }

  // Random values in (-1, 1) whatever the layout: the exponent bits of each 16-bit half are
  // bounded.
  TensorView view(const Backend& backend, const TensorDesc& desc) {
    const std::size_t bytes = std::max<std::size_t>(desc.bytes(), 64);
    buffers_.push_back(backend.device->allocate(bytes));
    std::vector<std::uint16_t> halves(bytes / 2 + 1);
    for (std::size_t i = 0; i < halves.size(); ++i) {
      const std::uint64_t bits = layers::random_bits(1, i);
      halves[i] = static_cast<std::uint16_t>(0x3e00U | (bits & 0x81ffU));
    }
    stream_->copy(buffers_.back().data(), reinterpret_cast<const std::byte*>(halves.data()), bytes);
    stream_->synchronize();
    return {desc, buffers_.back().data()};
  }

  int repeats_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Buffer> buffers_;
  Operands operands_;
};

}  // namespace

Ceilings measure_ceilings(const Backend& backend, DataType compute) {
  constexpr double budget = 0.3;
  Ceilings ceilings;
  {
    const std::int64_t side = backend.matrix_side;
    const layers::Dense op({.bias = false, .relu = false});
    Bench bench(backend, op, {{Shape{side, side}, compute}, {Shape{side, side}, DataType::f32}},
                Layout::nchw);
    ceilings.flops_per_second =
        2.0 * static_cast<double>(side * side * side) / bench.best_seconds(budget);
  }
  {
    const Layout layout = backend.preferred_layout(compute);
    const TensorDesc desc{Shape{backend.images, 64, 64, 64}, compute, layout};  // 1 MiB each in f32
    Bench bench(backend, layers::Scale(0.5F), {desc}, layout);
    ceilings.bytes_per_second =
        2.0 * static_cast<double>(desc.bytes()) / bench.best_seconds(budget);
  }
  return ceilings;
}

double roofline_seconds(const StepPlan& plan, const Ceilings& ceilings) {
  double seconds = 0;
  const Graph& graph = *plan.graph;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const double flops = needed_flops(graph, node, &plan.specs[i]);
    seconds += std::max(flops / ceilings.flops_per_second,
                        operand_bytes(graph, node) / ceilings.bytes_per_second);
  }
  return seconds;
}

double share_of_operations(const StepPlan& plan) {
  double needed = 0, counted = 0;
  for (std::size_t i = 0; i < plan.specs.size(); ++i) {
    const Node& node = plan.graph->nodes()[i];
    needed += needed_flops(*plan.graph, node, &plan.specs[i]);
    counted += needed_flops(*plan.graph, node);
  }
  return counted == 0 ? 1 : needed / counted;
}

}  // namespace cnn::bench
