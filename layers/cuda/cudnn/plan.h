#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layers/cuda/cudnn/cudnn_descriptor.h"
#include "layers/cuda/cudnn/native_graph.h"

// The engines of cuDNN that can run a graph, and plans of them. Choices need no device.
namespace cnn::layers::cuda {

// An engine that can run a graph, with its settings (knobs): plain data, equal for equal graphs,
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

// The limits on engines that may be chosen.
struct Limits {
  bool deterministic = true;  // equal bits from run to run
  bool strict_f32 = false;    // no tensor cores for f32, which would round to TF32
  bool compiled = false;      // engines that cuDNN compiles when a plan is made: needs a driver
  std::size_t workspace = std::size_t{1} << 30U;  // bytes; more only where nothing fits
};

// Returns at most this many choices for which cuDNN has a plan, in the order in which its
// heuristics expect them to be fast. Returns none if cuDNN cannot run the graph within the limits.
std::vector<Choice> candidates(const NativeGraph& graph, const Limits& limits, std::size_t at_most);

// A variant pack: the addresses of a plan's tensors in cuDNN's form. Each caller of a plan has one.
class Arguments {
 public:
  // Builds a new descriptor only if the addresses differ from those of the previous call.
  const Descriptor& bind(std::span<const std::int64_t> ids, std::span<void* const> pointers,
                         void* workspace);

 private:
  std::vector<void*> bound_;
  void* bound_workspace_ = nullptr;
  std::optional<Descriptor> list_;
};

// An execution plan: a choice built for the target of its graph. Runs only on live targets.
class Plan {
 public:
  // The graph must outlive the plan. Throws Error if cuDNN cannot build it.
  Plan(const NativeGraph& graph, const Choice& choice);

  std::size_t workspace() const { return workspace_; }
  // Enqueues the plan on the stream of the handle. pointers: the addresses of the graph's tensors
  // that are not inner, in their order.
  void run(cudnnHandle_t handle, Arguments& arguments, std::span<void* const> pointers,
           void* workspace) const;

 private:
  std::vector<Descriptor> parts_;
  Descriptor plan_;
  std::size_t workspace_ = 0;
  std::vector<std::int64_t> ids_;
};

}  // namespace cnn::layers::cuda
