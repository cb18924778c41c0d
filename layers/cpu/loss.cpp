#include "layers/loss.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"
#include "runtime/error.h"

namespace cnn::layers::cpu {

namespace {

constexpr std::int64_t exponentials_per_thread = elements_per_thread / 16;

// Runs before any parallel work, which must not throw.
void check_labels(std::span<const std::int32_t> labels, std::int64_t classes) {
  for (const std::int32_t label : labels) {
    if (label < 0 || label >= classes) {
      throw Error("softmax_cross_entropy: label " + std::to_string(label) + " is outside the " +
                  std::to_string(classes) + " classes");
    }
  }
}

// Writes the probabilities of one row and returns -log of the label's. Subtracts the largest logit
// first, so that exp cannot overflow.
double softmax_row(std::span<const float> logits, std::span<float> probabilities,
                   std::size_t label) {
  const double largest = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0;
  for (std::size_t c = 0; c < logits.size(); ++c) {
    const double power = std::exp(static_cast<double>(logits[c]) - largest);
    probabilities[c] = static_cast<float>(power);
    sum += power;
  }
  const double loss = std::log(sum) + largest - static_cast<double>(logits[label]);
  for (float& probability : probabilities) {
    probability = static_cast<float>(static_cast<double>(probability) / sum);
  }
  return loss;
}

void forward(const Operands& o) {
  const auto labels = o.in[1].as<std::int32_t>();
  const std::int64_t classes = o.in[0].desc.shape[1];
  check_labels(labels, classes);
  auto* const losses = reinterpret_cast<double*>(o.workspace.data());
  parallel_for(static_cast<std::int64_t>(labels.size()), exponentials_per_thread / classes + 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto n = static_cast<std::size_t>(begin); n < static_cast<std::size_t>(end);
                      ++n) {
                   const auto width = static_cast<std::size_t>(classes);
                   losses[n] = softmax_row(o.in[0].as<float>().subspan(n * width, width),
                                           o.out[1].as<float>().subspan(n * width, width),
                                           static_cast<std::size_t>(labels[n]));
                 }
               });
  double total = 0;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    total += losses[n];
  }
  o.out[0].as<float>()[0] = static_cast<float>(total / static_cast<double>(labels.size()));
}

void backward(const TypedLoops& typed, const Operands& o) {
  const auto labels = o.in[1].as<std::int32_t>();
  const std::int64_t classes = o.in[0].desc.shape[1];
  check_labels(labels, classes);
  const float factor = o.in[2].as<float>()[0] / static_cast<float>(labels.size());
  parallel_for(static_cast<std::int64_t>(labels.size()), elements_per_thread / classes + 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t n = begin; n < end; ++n) {
                   const std::int64_t own = n * classes + labels[static_cast<std::size_t>(n)];
                   const float hit = o.in[0].as<float>()[static_cast<std::size_t>(own)] - 1.0F;
                   typed.scale(at(o.in[0], n * classes), at(o.out[0], n * classes), classes,
                               factor);
                   o.out[0].as<float>()[static_cast<std::size_t>(own)] = factor * hit;
                 }
               });
}

}  // namespace

// Accuracy and SyntheticLabels have no rows: their reference loops run on plain operands and cost
// less than waking a second thread.
void add_loss_rows(KernelTable& table, const Loops& loops) {
  table.add<SoftmaxCrossEntropy>(
      [](const SoftmaxCrossEntropy&, const Signature& request) -> std::optional<KernelSpec> {
        return in_layout(request, Layout::nchw,
                         static_cast<std::size_t>(request.in[0].shape[0]) * sizeof(double));
      },
      [](const SoftmaxCrossEntropy&, const Signature&) { return own_kernel(forward); });
  table.add<SoftmaxCrossEntropyBackward>(
      [](const SoftmaxCrossEntropyBackward&, const Signature& request)
          -> std::optional<KernelSpec> { return in_layout(request, Layout::nchw); },
      [&loops](const SoftmaxCrossEntropyBackward&, const Signature&) {
        return own_kernel([&loops](const Operands& o) { backward(loops.f32, o); });
      });
}

}  // namespace cnn::layers::cpu
