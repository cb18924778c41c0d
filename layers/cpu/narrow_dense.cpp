#include <algorithm>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/rows.h"
#include "layers/dense.h"

// A dense layer with few outputs and very many inputs (the `trivial` network: 154,587 -> 1) is a
// dot product: reading the weights limits its speed, and f32 sums lose digits that a training step
// amplifies. Sums in double cost no extra time here.
namespace cnn::layers::cpu {
namespace {

constexpr std::int64_t widest = 4;       // outputs
constexpr std::int64_t shortest = 4096;  // inputs
constexpr std::int64_t lanes = 8;        // independent sums, for the vector units

bool is_narrow(const Shape& weights) { return weights[1] <= widest && weights[0] >= shortest; }

double dot(const float* x, const float* w, std::int64_t count, std::int64_t stride) {
  double sums[lanes] = {};
  std::int64_t k = 0;
  for (; k + lanes <= count; k += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      sums[lane] += static_cast<double>(x[k + lane]) * static_cast<double>(w[(k + lane) * stride]);
    }
  }
  for (; k < count; ++k) {
    sums[0] += static_cast<double>(x[k]) * static_cast<double>(w[k * stride]);
  }
  double total = 0;
  for (const double sum : sums) {
    total += sum;
  }
  return total;
}

void run_narrow(const DenseAttributes& attributes, const Operands& o) {
  const std::int64_t inputs = o.in[1].desc.shape[0], outputs = o.in[1].desc.shape[1];
  const float* const x = o.in[0].as<float>().data();
  const float* const w = o.in[1].as<float>().data();
  const float* const bias = attributes.bias ? o.in[2].as<float>().data() : nullptr;
  float* const y = o.out[0].as<float>().data();
  const std::int64_t results = o.in[0].desc.shape[0] * outputs;
  parallel_for(results, elements_per_thread / inputs + 1,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t i = first; i < last; ++i) {
                   const std::int64_t m = i % outputs;
                   const double sum = dot(x + i / outputs * inputs, w + m, inputs, outputs) +
                                      (bias == nullptr ? 0.0 : static_cast<double>(bias[m]));
                   y[i] = static_cast<float>(attributes.relu ? std::max(sum, 0.0) : sum);
                 }
               });
}

std::optional<KernelSpec> describe_narrow(const Dense& /*op*/, const Signature& request) {
  if (!is_narrow(request.in[1].shape)) {
    return std::nullopt;
  }
  KernelSpec spec;
  for (const TensorDesc& desc : request.in) {
    spec.in.push_back(plain(desc));
  }
  spec.out.push_back(plain(request.out[0]));
  return spec;
}

}  // namespace

void add_narrow_dense_rows(KernelTable& table) {
  table.add<Dense>(describe_narrow, [](const Dense& op, const Signature& /*signature*/) {
    return own_kernel(
        [attributes = op.attributes](const Operands& o) { run_narrow(attributes, o); });
  });
}

}  // namespace cnn::layers::cpu
