#include "layers/sliced_norm.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "tests/support/host_tensor.h"

namespace cnn::layers {
namespace {

using tests::HostTensor;

constexpr std::int64_t channels = 2, side = 3, pixels = side * side;

TensorDesc images(std::int64_t count) { return {.shape = {count, channels, side, side}}; }
TensorDesc per_channel() { return {.shape = {channels}}; }

HostTensor filled(const TensorDesc& desc, const std::vector<double>& values) {
  HostTensor tensor(desc);
  const auto to = tensor.view().as<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    to[i] = static_cast<float>(values[i]);
  }
  return tensor;
}

std::vector<double> values_of(const HostTensor& tensor) {
  const auto from = tensor.view().as<float>();
  return {from.begin(), from.end()};
}

std::vector<double> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) {
    value = static_cast<double>(random() % 2001) / 1000 - 1;
  }
  return values;
}

// Runs the plain loops of an op.
std::vector<HostTensor> run(const Op& op, const std::vector<const HostTensor*>& in) {
  std::vector<TensorDesc> descs;
  std::vector<TensorView> inputs, outputs;
  for (const HostTensor* tensor : in) {
    descs.push_back(tensor->desc());
    inputs.push_back(tensor->view());
  }
  std::vector<HostTensor> out;
  for (const TensorDesc& desc : op.infer(descs)) {
    out.emplace_back(desc);
    outputs.push_back(out.back().view());
  }
  op.reference(inputs, outputs);
  return out;
}

struct BiasedMoments {
  double mean = 0, variance = 0;
};

// Returns the moments of one channel over all images, in double.
BiasedMoments moments_of(const std::vector<double>& x, std::size_t channel) {
  const std::size_t count = x.size() / channels;
  BiasedMoments result;
  std::vector<double> values;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i / pixels % channels == channel) {
      values.push_back(x[i]);
      result.mean += x[i] / static_cast<double>(count);
    }
  }
  for (const double value : values) {
    result.variance += (value - result.mean) * (value - result.mean) / static_cast<double>(count);
  }
  return result;
}

// Returns sum(dy * norm(x)) over the batch for gamma 1 and beta 0, in double.
double weighted_norm(const std::vector<double>& x, const std::vector<double>& dy, double epsilon) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const BiasedMoments moments = moments_of(x, i / pixels % channels);
    sum += dy[i] * (x[i] - moments.mean) / std::sqrt(moments.variance + epsilon);
  }
  return sum;
}

// A batch of three images in slices of one and two.
class SlicedNorm : public testing::Test {
 protected:
  static constexpr std::int64_t in_first = channels * pixels, in_all = 3 * in_first;

  SlicedNorm()
      : x(random_values(in_all, 1)),
        dy(random_values(in_all, 2)),
        first(filled(images(1), {x.begin(), x.begin() + in_first})),
        second(filled(images(2), {x.begin() + in_first, x.end()})) {}

  // Returns mean and variance of the batch.
  std::vector<HostTensor> merged() const {
    const std::vector<HostTensor> a = run(NormMoments(), {&first});
    const std::vector<HostTensor> b = run(NormMoments(), {&second});
    return run(MergeMoments({double{pixels}, 2.0 * pixels}), {&a[0], &a[1], &b[0], &b[1]});
  }

  std::vector<double> x, dy;
  HostTensor first, second;
};

TEST_F(SlicedNorm, MergesTheMomentsOfSlicesToThoseOfTheBatch) {
  const std::vector<HostTensor> batch = merged();
  for (std::size_t c = 0; c < channels; ++c) {
    const BiasedMoments expected = moments_of(x, c);
    EXPECT_NEAR(values_of(batch[0])[c], expected.mean, 1e-6);
    EXPECT_NEAR(values_of(batch[1])[c], expected.variance, 1e-6);
  }
}

// The gradient of a slice depends on the sums over all slices.
TEST_F(SlicedNorm, HasTheInputGradientOfFiniteDifferences) {
  const BatchNormAttributes attributes;
  const std::vector<HostTensor> batch = merged();
  const HostTensor beta = filled(per_channel(), {0, 0});
  const HostTensor gradients[] = {filled(images(1), {dy.begin(), dy.begin() + in_first}),
                                  filled(images(2), {dy.begin() + in_first, dy.end()})};
  const HostTensor* const slices[] = {&first, &second};
  std::vector<std::vector<double>> sums(2, std::vector<double>(channels));
  for (std::size_t s = 0; s < 2; ++s) {
    const std::vector<HostTensor> tensors =
        run(NormGradientSums(attributes), {slices[s], &beta, &batch[0], &batch[1], &gradients[s]});
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t c = 0; c < channels; ++c) {
        sums[i][c] += values_of(tensors[i])[c];
      }
    }
  }
  const HostTensor dbeta = filled(per_channel(), sums[0]), dgamma = filled(per_channel(), sums[1]);
  std::vector<double> dx;
  for (std::size_t s = 0; s < 2; ++s) {
    const std::vector<HostTensor> tensors =
        run(NormInputGradient(attributes, 3.0 * pixels),
            {slices[s], &beta, &batch[0], &batch[1], &dbeta, &dgamma, &gradients[s]});
    const std::vector<double> values = values_of(tensors[0]);
    dx.insert(dx.end(), values.begin(), values.end());
  }
  constexpr double step = 1e-4;
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::vector<double> more = x, less = x;
    more[i] += step;
    less[i] -= step;
    const double expected = (weighted_norm(more, dy, attributes.epsilon) -
                             weighted_norm(less, dy, attributes.epsilon)) /
                            (2 * step);
    EXPECT_NEAR(dx[i], expected, 1e-4) << i;
  }
}

}  // namespace
}  // namespace cnn::layers
