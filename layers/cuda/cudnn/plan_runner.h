#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "layers/cuda/cudnn/libraries.h"
#include "layers/cuda/cudnn/plan.h"

namespace cnn::layers::cuda {

// Runs a node's graph by the engine that the libraries have chosen. cuDNN may refuse to run an
// engine that it has built: then the first run takes the next engine that runs within the planned
// workspace.
class PlanRunner {
 public:
  // Throws Error if there is no engine for the graph.
  PlanRunner(std::shared_ptr<Libraries> libraries, std::string key, Libraries::Build build);

  // Enqueues the graph. pointers: as for Plan::run(). Throws Error if no engine runs.
  void run(Stream& stream, std::span<void* const> pointers, std::byte* workspace);

 private:
  std::shared_ptr<Libraries> libraries_;
  std::string key_;
  Libraries::Build build_;
  std::shared_ptr<const Plan> plan_;
  Arguments arguments_;
  bool has_run_ = false;
};

}  // namespace cnn::layers::cuda
