#pragma once

#include <array>
#include <cstdint>

#include "models/model.h"
#include "runtime/op.h"

namespace cnn::models {

// The networks without their last layer: images [N, C, H, W] -> features [N, K]. Names and order of
// parameters match the checkpoints of tf_cnn_benchmarks. All functions throw Error with the layer's
// name if the images are too small for it.

Value trivial(Value images);
Value lenet(Value images);
Value alexnet(Value images);
Value alexnet_cifar(Value images);
Value cifar10_full(Value images);
Value overfeat(Value images);
Value googlenet(Value images);
Value inception3(Value images);
Value inception4(Value images);
Value mobilenet(Value images);
Value mnist_deep(Value images);

// convolutions: in each of the five groups.
Value vgg(Value images, const std::array<int, 5>& convolutions);

// v1_5: the bottleneck's stride is on its 3x3 convolution. v2: activations come first.
enum class ResnetVersion : std::uint8_t { v1, v1_5, v2 };

// blocks: bottlenecks in each of the four stages.
Value resnet(Value images, ResnetVersion version, const std::array<int, 4>& blocks);

// blocks: in each of the three stages; the depth is 6 blocks + 2.
Value resnet_cifar(Value images, ResnetVersion version, int blocks);

// The networks of TensorFlow's official model garden, with their last layer of 1001 classes.
struct OfficialResnet {
  bool bottleneck = true;
  ResnetVersion version = ResnetVersion::v1;  // v1 or v2
  std::array<int, 4> blocks{};                // per stage
};
Value official_resnet(Value images, const OfficialResnet& network);

enum class NasnetSize : std::uint8_t { mobile, large, cifar };

// NASNet-A, for ImageNet (mobile, large) and CIFAR-10.
Value nasnet(Value images, NasnetSize size);
TwoHeads nasnet_with_auxiliary_head(Value images, NasnetSize size);
TwoHeads inception3_with_auxiliary_head(Value images);

// layers: in each of the three dense blocks. growth: channels that each layer adds.
Value densenet(Value images, int layers, int growth);

}  // namespace cnn::models
