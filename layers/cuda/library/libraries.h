#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "layers/cuda/library/cublas.h"
#include "layers/cuda/library/machine.h"
#include "layers/cuda/library/native_graph.h"
#include "layers/cuda/library/plan.h"
#include "layers/cuda/library/plan_cache.h"
#include "layers/cuda/library/target.h"
#include "layers/cuda/library/tuner.h"
#include "runtime/cuda/handle.h"
#include "runtime/device.h"

namespace cnn::layers::cuda {

using CublasHandle = cnn::cuda::Handle<cublasLtHandle_t, cublasLtDestroy>;

struct LibraryOptions {
  bool deterministic = true;  // equal bits from run to run
  bool strict_f32 = false;    // f32 products are not rounded to TF32
  bool tune = false;          // time what the cache has no choice for; needs a device
};

// Data that the rows of cuDNN and cuBLAS share: the device that plans are made for, how engines are
// chosen, and the libraries' handles on a live device. Choices are remembered by graph. Thread-safe
// but for handles, which belong to the thread that runs kernels.
class Libraries {
 public:
  // For a device that is only described: kernels can be described, not made.
  Libraries(Machine machine, LibraryOptions options, std::optional<PlanCache> cache = std::nullopt);
  // For the CUDA device with which the calling thread works, which must outlive this. Throws Error
  // if cuDNN or cuBLAS do not start.
  Libraries(Machine machine, LibraryOptions options, Device& device,
            std::optional<PlanCache> cache);

  const Machine& machine() const { return machine_; }
  const LibraryOptions& options() const { return options_; }
  const Target& target() const { return target_; }
  bool is_live() const { return target_.is_live(); }

  using Build = std::function<OperationGraph()>;
  // The engine for a graph: from the cache, else timed (with tune, where its operands fit the
  // device), else the first that cuDNN's heuristics propose. Nothing: cuDNN cannot run such a
  // graph.
  std::optional<Choice> choose(const std::string& key, const Build& build);

  // The chosen plan, built for a live device; one for all nodes of the same graph. Throws Error if
  // there is none, or it wants more workspace than choose() said.
  std::shared_ptr<const Plan> plan(const std::string& key, const Build& build);

  // Handles of a live device; throws Error without one. cudnn() enqueues on that stream from now
  // on.
  cudnnHandle_t cudnn(Stream& stream) const;
  cublasLtHandle_t cublas() const;

  // The use of the cache: choices taken from it, choices timed now.
  struct Counts {
    std::size_t cached = 0, tuned = 0, guessed = 0;
  };
  Counts counts() const;
  void stop_tuning();  // from now on nothing is timed, and nothing is added to the cache
  // Returns notes for the user about choices made since the last call: one line for each engine of
  // the cache that cuDNN does not build any more.
  std::vector<std::string> take_notes();

 private:
  // A plan and the graph that it refers to.
  struct Ready {
    Ready(const Target& target, const OperationGraph& operations, const Choice& choice);
    NativeGraph graph;
    Plan plan;
  };

  std::optional<Choice> cached(const std::string& key, const NativeGraph& graph);
  std::optional<Choice> find_out(const std::string& key, const Build& build);
  Limits limits(bool compiled) const;
  std::string cache_key(const std::string& key) const;

  Machine machine_;
  LibraryOptions options_;
  CudnnHandle cudnn_;
  CublasHandle cublas_;
  Target target_;
  std::optional<PlanCache> cache_;
  std::unique_ptr<Tuner> tuner_;
  mutable std::mutex mutex_;
  std::map<std::string, std::optional<Choice>> choices_;
  std::map<std::string, std::shared_ptr<const Ready>> plans_;
  Counts counts_;
  std::vector<std::string> notes_;
};

// cuDNN and cuBLAS as they run: name and version, for reports. Throws Error if cuDNN is of another
// major version than the program was built with.
struct LibraryVersion {
  std::string name, version;
};
std::vector<LibraryVersion> library_versions();

}  // namespace cnn::layers::cuda
