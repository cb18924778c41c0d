#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layers/cuda/conv_graph.h"
#include "layers/cuda/library/cudnn_descriptor.h"
#include "layers/window.h"
#include "runtime/cuda/handle.h"
#include "runtime/tensor.h"

// What we use of cuDNN: graphs of a convolution and what surrounds it, the engines that can run
// them, and plans. Graphs and choices of engines need no device.
namespace cnn::layers::cuda {

using CudnnHandle = cnn::cuda::Handle<cudnnHandle_t, cudnnDestroy>;

// What plans are made for: a live device, or one that is only described.
class Target {
 public:
  // As read from a device, see Machine::device_json. Throws Error if cuDNN cannot read it.
  static Target described(const std::string& device_json);
  // The device that the handle belongs to. The handle must outlive the target.
  static Target live(cudnnHandle_t handle);

  bool is_live() const { return handle_ != nullptr; }

 private:
  friend class OperationGraph;
  friend class Candidates;
  friend class Plan;

  std::optional<Descriptor> properties_;
  cudnnHandle_t handle_ = nullptr;
};

// How cuDNN describes a device to itself, to be kept as Machine::device_json.
std::string device_json(int ordinal);
std::string cudnn_version_text(std::size_t version);  // 91900 -> "9.19.0"

// A graph of operations on tensors in nhwc. A tensor is named by a number that its user chooses.
class OperationGraph {
 public:
  struct Tensor {
    std::int64_t id = 0;
    Shape shape;  // N, C, H, W
    DataType type = DataType::f32;
    bool inner = false;      // never in memory
    std::int64_t pitch = 0;  // elements between pixels, where that is more than C
  };

  explicit OperationGraph(const Target& target) : target_(target) {}

  void tensor(const Tensor& tensor);
  // x, w and y as of the forward convolution; the direction says which of them is computed, in f32
  // sums. Fewer channels in w than in x make groups.
  struct Convolution {
    Direction direction{};
    Window window;
    std::int64_t x = 0, w = 0, y = 0;
  };
  void convolution(const Convolution& convolution);
  // The second operand may be [1, C, 1, 1].
  void add(std::int64_t a, std::int64_t b, std::int64_t out);
  void subtract(std::int64_t a, std::int64_t b, std::int64_t out);
  void multiply(std::int64_t a, std::int64_t b, std::int64_t out);
  void relu(std::int64_t in, std::int64_t out);
  void relu_backward(std::int64_t gradient, std::int64_t in, std::int64_t out);
  // sum and squares [1, C, 1, 1], f32: of x and x^2 over all else.
  void statistics(std::int64_t x, std::int64_t sum, std::int64_t squares);
  // What a batch norm's gradient needs of its sums; all but x and dy are [1, C, 1, 1], f32. d loss
  // / d x = a dy + b x + c.
  struct NormBackward {
    std::int64_t x = 0, dy = 0, mean = 0, inverse_deviation = 0, gamma = 0;
    std::int64_t dgamma = 0, dbeta = 0, a = 0, b = 0, c = 0;
  };
  void norm_backward(const NormBackward& norm);
  // No more can be added. Throws Error if cuDNN does not take the graph.
  void finish();

  const Descriptor& native() const { return *graph_; }
  std::span<const Tensor> tensors() const { return tensors_; }

 private:
  const Descriptor& find(std::int64_t id) const;
  struct Operand {
    cudnnBackendAttributeName_t name{};
    std::int64_t tensor = 0;
  };
  void pointwise(cudnnPointwiseMode_t mode, std::span<const Operand> operands);

  const Target& target_;
  std::vector<Tensor> tensors_;
  std::vector<Descriptor> tensor_descriptors_, parts_, operations_;
  std::optional<Descriptor> graph_;
};

// One of the kernels that can run a graph, with its settings: plain data, equal for equal graphs,
// devices and versions of cuDNN.
struct Choice {
  struct Knob {
    std::int64_t type = 0, value = 0;
    bool operator==(const Knob&) const = default;
  };
  std::int64_t engine = 0;
  std::vector<Knob> knobs;
  std::size_t workspace = 0;  // bytes
  bool operator==(const Choice&) const = default;
};
std::string to_string(const Choice& choice);  // "engine 62 knobs 2=4,13=0"

// Which engines may be chosen.
struct Limits {
  bool deterministic = true;  // equal bits from run to run
  bool strict_f32 = false;    // no tensor cores for f32, which would round to TF32
  bool compiled = false;      // engines that cuDNN compiles when a plan is made: needs a driver
  std::size_t workspace = std::size_t{1} << 30U;  // bytes; more only where nothing fits
};

// Choices that cuDNN has a plan for, in the order in which it expects them to be fast; at most this
// many. Empty: cuDNN cannot run the graph within the limits.
std::vector<Choice> candidates(const OperationGraph& graph, const Target& target,
                               const Limits& limits, std::size_t at_most);

// Addresses of the tensors of a plan, as cuDNN takes them: one for each place where a plan runs.
class Arguments {
 public:
  // Makes a new list only where addresses differ from the call before.
  const Descriptor& bind(std::span<const std::int64_t> ids, std::span<void* const> pointers,
                         void* workspace);

 private:
  std::vector<void*> bound_;
  void* bound_workspace_ = nullptr;
  std::optional<Descriptor> list_;
};

// A choice made ready for its device. Runs on live targets only.
class Plan {
 public:
  // The graph must outlive the plan. Throws Error if cuDNN cannot build it.
  Plan(const OperationGraph& graph, const Choice& choice, const Target& target);

  std::size_t workspace() const { return workspace_; }
  // pointers: of the graph's tensors that are not inner, in their order. Enqueues on the stream of
  // the handle.
  void run(cudnnHandle_t handle, Arguments& arguments, std::span<void* const> pointers,
           void* workspace) const;

 private:
  std::vector<Descriptor> parts_;
  Descriptor plan_;
  std::size_t workspace_ = 0;
  std::vector<std::int64_t> ids_;
};

}  // namespace cnn::layers::cuda
