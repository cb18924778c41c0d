#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/machine/backend.h"
#include "bench/report/histogram.h"
#include "runtime/node_observer.h"
#include "runtime/program.h"

namespace cnn::bench {

// Samples gradients and input images of single steps for TensorBoard. A gradient is that of the
// loss without weight decay, aggregated over ranks and divided by the loss scale, before clipping.
class StepSamples final : public NodeObserver {
 public:
  // gradients_together: only log_gradients().
  enum class Detail : std::uint8_t { gradients_together, all };
  // plan: of the step, or any other plan of its graph. The backend must outlive it.
  StepSamples(const StepPlan& plan, const Backend& backend, Detail detail);

  // Call before each step. wanted: samples this step.
  void begin(bool wanted);
  void enqueued(NodeId node, const Operands& operands, Lane lane, Stream& stream) override;

  struct Gradient {
    std::string parameter;
    Histogram values;
  };
  struct Image {
    std::int64_t height = 0, width = 0;
    std::vector<std::uint8_t> pixels;  // RGB, row by row
  };

  // The results of the latest step, if it was wanted. log_gradients(): natural logarithms of the
  // magnitudes of all non-zero gradient elements.
  Histogram log_gradients() const;
  std::vector<Gradient> gradients() const;  // in the order of the updates
  std::vector<Image> images() const;        // the first three of the batch, as bytes

 private:
  struct Work {
    std::string parameter;
    TensorView view;
    std::optional<float> scale;       // the loss scale if it is constant
    const float* variable = nullptr;  // otherwise the address of the loss scale
    Histogram logs, values;
  };

  void sample_gradients(const Node& update, const Operands& operands, Lane lane, Stream& stream);
  void sample_images(const TensorView& view, Lane lane, Stream& stream);
  // Returns the host address of a tensor's bytes, valid in stream order; copies them to `copy` if
  // needed.
  std::byte* on_host(const TensorView& view, std::size_t bytes, std::byte* copy, Stream& stream);
  void count(Work& work) const;

  const Backend& backend_;
  Detail detail_;
  std::shared_ptr<const Graph> graph_;
  std::array<Buffer, lane_count> copied_;  // on the host, if it cannot see the device's memory
  std::optional<TensorId> images_id_;
  bool wanted_ = false, images_taken_ = false;
  std::deque<Work> work_;  // streams hold references to elements while more are added
  TensorDesc image_desc_;
  const std::byte* image_source_ = nullptr;
  std::vector<std::byte> image_bytes_;  // of the first images, in the tensor's layout
};

}  // namespace cnn::bench
