#include "layers/cuda/cudnn/plan_runner.h"

#include <utility>

#include "runtime/error.h"

namespace cnn::layers::cuda {

PlanRunner::PlanRunner(std::shared_ptr<Libraries> libraries, std::string key,
                       Libraries::Build build)
    : libraries_(std::move(libraries)),
      key_(std::move(key)),
      build_(std::move(build)),
      plan_(libraries_->plan(key_, build_)) {}

void PlanRunner::run(Stream& stream, std::span<void* const> pointers, std::byte* workspace) {
  cudnnHandle_t const handle = libraries_->cudnn(stream);
  while (!has_run_) {
    try {
      plan_->run(handle, arguments_, pointers, workspace);
      has_run_ = true;
      return;
    } catch (const Error& error) {
      std::shared_ptr<const Plan> next = libraries_->next_plan(key_, build_, *plan_, error.what());
      if (next == nullptr) {
        throw;
      }
      plan_ = std::move(next);
    }
  }
  plan_->run(handle, arguments_, pointers, workspace);
}

}  // namespace cnn::layers::cuda
