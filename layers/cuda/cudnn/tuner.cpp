#include "layers/cuda/cudnn/tuner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "runtime/cuda/stream.h"
#include "runtime/error.h"

namespace cnn::layers::cuda {
namespace {

constexpr std::size_t pattern_bytes = std::size_t{4} << 20U;
constexpr int rounds = 3, runs_per_round = 4;

// Values around one of either sign, in the bits of a type. Zeros would draw less power and so run
// at higher clocks than real data does.
std::uint32_t two_halves(std::uint32_t random, DataType type) {
  // Exponents of 2^-3 to 2^0: four neighbours below the type's bias.
  const std::uint32_t bias = type == DataType::bf16 ? 127 : 15;
  const std::uint32_t mantissa_bits = type == DataType::bf16 ? 7 : 10;
  const auto half = [&](std::uint32_t bits) {
    const std::uint32_t exponent = bias - (bits >> 13U & 3U);
    return (bits & 0x8000U) | exponent << mantissa_bits | (bits & ((1U << mantissa_bits) - 1));
  };
  return half(random & 0xffffU) | half(random >> 16U) << 16U;
}

std::uint32_t one_float(std::uint32_t random) {
  return (random & 0x80000000U) | (127U - (random >> 23U & 3U)) << 23U | (random & 0x7fffffU);
}

}  // namespace

Tuner::Tuner(Device& device, cudnnHandle_t handle)
    : device_(device),
      handle_(handle),
      stream_(device.make_stream(Lane::compute)),
      pattern_(device.allocate_host(pattern_bytes)) {}

void Tuner::fill(std::byte* to, std::size_t bytes, DataType type) {
  stream_->synchronize();  // the pattern may still be on its way to another tensor
  std::uint32_t state = 12345;
  for (std::size_t at = 0; at < pattern_bytes; at += sizeof(state)) {
    state = state * 1664525U + 1013904223U;
    const std::uint32_t random = state ^ state >> 15U;
    const std::uint32_t word = type == DataType::f32 ? one_float(random) : two_halves(random, type);
    std::memcpy(pattern_.data() + at, &word, sizeof(word));
  }
  for (std::size_t at = 0; at < bytes; at += pattern_bytes) {
    stream_->copy(to + at, pattern_.data(), std::min(pattern_bytes, bytes - at));
  }
}

double Tuner::seconds_of(const Plan& plan, std::span<void* const> pointers, std::byte* workspace) {
  check_cudnn(cudnnSetStream(handle_, cnn::cuda::native(*stream_)), "change its stream");
  Arguments arguments;
  plan.run(handle_, arguments, pointers, workspace);  // the first run loads the kernel
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    stream_->stamp(start_);
    for (int run = 0; run < runs_per_round; ++run) {
      plan.run(handle_, arguments, pointers, workspace);
    }
    stream_->stamp(end_);
    stream_->synchronize();
    best = std::min(best, std::chrono::duration<double>(end_ - start_).count() / runs_per_round);
  }
  return best;
}

std::optional<std::vector<Buffer>> Tuner::operands_of(const OperationGraph& graph,
                                                      std::size_t workspace) {
  std::vector<TensorDesc> stored;
  std::size_t all = workspace;
  for (const OperationGraph::Id id : graph.in_memory()) {
    const OperationGraph::Tensor& tensor = graph.tensor(id);
    stored.push_back({.shape = tensor.shape,
                      .type = tensor.type,
                      .layout = Layout::nhwc,
                      .pitch = tensor.pitch});
    all += stored.back().extent();
  }
  if (all > device_.memory_bytes()) {
    return std::nullopt;
  }
  std::vector<Buffer> operands;
  for (const TensorDesc& desc : stored) {
    operands.push_back(device_.allocate(desc.extent()));
    fill(operands.back().data(), desc.extent(), desc.type);
  }
  return operands;
}

std::optional<Tuner::Timed> Tuner::fastest(const NativeGraph& graph,
                                           std::span<const Choice> choices) {
  std::size_t largest = 64;
  for (const Choice& choice : choices) {
    largest = std::max(largest, choice.workspace);
  }
  const auto operands = operands_of(graph.operations(), largest);
  if (!operands) {
    return std::nullopt;
  }
  std::vector<void*> pointers;
  for (const Buffer& operand : *operands) {
    pointers.push_back(operand.data());
  }
  const Buffer workspace = device_.allocate(largest);
  std::optional<Timed> best;
  std::string refused;
  for (const Choice& choice : choices) {
    try {
      const Plan plan(graph, choice);
      const double seconds = seconds_of(plan, pointers, workspace.data());
      if (!best || seconds < best->seconds) {
        best = Timed{choice, seconds};
      }
    } catch (const Error& error) {  // an engine that has a plan may still not run
      refused = error.what();
    }
  }
  check(best.has_value(), "none of " + std::to_string(choices.size()) +
                              " engines of cuDNN ran while tuning; the last said: " + refused);
  return best;
}

}  // namespace cnn::layers::cuda
