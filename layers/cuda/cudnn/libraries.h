#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "layers/cuda/cudnn/cublas.h"
#include "layers/cuda/cudnn/machine.h"
#include "layers/cuda/cudnn/native_graph.h"
#include "layers/cuda/cudnn/plan.h"
#include "layers/cuda/cudnn/plan_cache.h"
#include "layers/cuda/cudnn/target.h"
#include "layers/cuda/cudnn/tuner.h"
#include "runtime/cuda/handle.h"
#include "runtime/device.h"

namespace cnn::layers::cuda {

using CublasHandle = cnn::cuda::Handle<cublasLtHandle_t, cublasLtDestroy>;

struct LibraryOptions {
  bool deterministic = true;  // equal bits from run to run
  bool strict_f32 = false;    // f32 products are not rounded to TF32
  bool tune = false;          // time graphs that the cache lacks; needs a device
  // The limit on seconds spent on timing; the remaining graphs are not timed.
  double tune_seconds = std::numeric_limits<double>::infinity();
  // The version of the program. Times of nodes in the plan cache count for this version alone.
  std::string build = {};
};

// The state that the rows of cuDNN and cuBLAS share: the device for which plans are made, the
// choices of engines by graph, and the libraries' handles on a live device. Thread-safe except for
// handles, which belong to the thread that runs kernels.
class Libraries {
 public:
  // For a device that is only described: kernels can be described but not made.
  Libraries(Machine machine, LibraryOptions options, std::optional<PlanCache> cache = std::nullopt);
  // For the calling thread's current CUDA device, which must outlive this object. The cache, if
  // there is one, keeps timed choices. Throws Error if cuDNN or cuBLAS do not start.
  Libraries(Machine machine, LibraryOptions options, Device& device,
            std::optional<PlanCache> cache);

  const Machine& machine() const { return machine_; }
  const LibraryOptions& options() const { return options_; }
  const Target& target() const { return target_; }
  bool is_live() const { return target_.is_live(); }

  using Build = std::function<OperationGraph()>;
  // Returns the engine for a graph: from the cache, else by timing (with tune, if the operands fit
  // the device), else the first that cuDNN's heuristics propose. Returns nothing if cuDNN cannot
  // run such a graph.
  std::optional<Choice> choose(const std::string& key, const Build& build);

  // Returns the chosen plan, built for a live device; all nodes of the same graph share it. Throws
  // Error if there is none, or if it needs more workspace than choose() returned.
  std::shared_ptr<const Plan> plan(const std::string& key, const Build& build);

  // Replaces a plan that cuDNN has built but does not run, for the reason `why`, for all nodes of
  // the graph: returns the next engine that cuDNN builds within the planned workspace, and adds a
  // note for the user. Returns null if there is no other.
  std::shared_ptr<const Plan> next_plan(const std::string& key, const Build& build,
                                        const Plan& failed, const std::string& why);

  // Returns the seconds of a node, by the key of NodeSeconds: as returned before, from the cache,
  // or by measure() if tuning is on and has time left. They are rounded as the cache stores them,
  // so that later runs make the same decisions. Returns nothing if they are unknown.
  std::optional<double> node_seconds(const std::string& key,
                                     const std::function<std::optional<double>()>& measure);
  // Makes node_seconds() return nothing from now on, here and for ranks that adopt() later.
  void forget_node_seconds();

  // Return the libraries' handles; throw Error without a live device. cudnn() makes its handle
  // enqueue on this stream.
  cudnnHandle_t cudnn(Stream& stream) const;
  cublasLtHandle_t cublas() const;

  // Returns all choices and seconds of nodes so far, for adopt() of other ranks: one line for each
  // graph or node.
  std::string choices_text() const;
  // Adopts the choices and seconds of another rank, so that memory is planned alike and all ranks
  // compute the same: from now on nothing is timed here, and no cache is read. Afterwards choose()
  // throws Error if this device cannot run the other rank's engine. Throws Error if the text is not
  // of choices_text().
  void adopt(const std::string& choices);

  // Counts of choices by their origin: the cache, the tuner, cuDNN's heuristics, or another rank.
  struct Counts {
    std::size_t cached = 0, tuned = 0, guessed = 0, adopted = 0;
    std::size_t untimed = 0;      // guessed because the time of tuning was used up
    std::size_t timed_nodes = 0;  // measured by node_seconds() in this run
    double tuning_seconds = 0;
  };
  Counts counts() const;
  void stop_tuning();  // from now on nothing is timed, and nothing is added to the cache
  // Returns notes for the user about choices made since the last call: one line for each engine of
  // the cache that cuDNN does not build any more, and for each that it builds and does not run.
  std::vector<std::string> take_notes();

 private:
  // A plan and the graph that it refers to.
  struct Ready {
    Ready(const Target& target, const OperationGraph& operations, const Choice& choice);
    NativeGraph graph;
    Plan plan;
    Choice choice;
  };

  std::optional<Choice> cached(const std::string& key, const NativeGraph& graph);
  std::optional<Choice> adopted(const std::string& key, const NativeGraph& graph) const;
  std::optional<Choice> timed(const std::string& key, const NativeGraph& graph);
  std::optional<Choice> find_out(const std::string& key, const Build& build);
  std::optional<double> known_node_seconds(const std::string& key);
  Limits limits(bool compiled) const;
  std::string cache_key(const std::string& key) const;
  std::string node_cache_key(const std::string& key) const;
  void drop_tuner();

  Machine machine_;
  LibraryOptions options_;
  CudnnHandle cudnn_;
  CublasHandle cublas_;
  Target target_;
  std::optional<PlanCache> cache_;
  std::unique_ptr<Tuner> tuner_;
  mutable std::mutex mutex_;
  std::map<std::string, std::optional<Choice>> choices_;
  std::map<std::string, std::optional<Choice>> adopted_;  // by graph; nothing: it has no engine
  std::map<std::string, std::shared_ptr<const Ready>> plans_;
  std::map<std::string, double> node_seconds_;
  bool knows_node_seconds_ = true;
  std::map<std::string, std::vector<Choice>> refused_;  // by graph: built, but did not run
  Counts counts_;
  std::vector<std::string> notes_;
};

// Returns name and version of the loaded cuDNN and cuBLAS, for reports. Throws Error if cuDNN is of
// another major version than the program was built with.
struct LibraryVersion {
  std::string name, version;
};
std::vector<LibraryVersion> library_versions();

}  // namespace cnn::layers::cuda
