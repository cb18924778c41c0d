#include "bench/session/step_samples.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "layers/optimizer.h"
#include "runtime/memory_plan.h"
#include "runtime/tensor.h"

namespace cnn::bench {
namespace {

constexpr std::int64_t max_images = 3;  // as TensorFlow's image summaries do
constexpr std::int64_t channel_block = 16;

std::size_t index_of_lane(Lane lane) { return static_cast<std::size_t>(lane); }

const layers::Update* update_of(const Node& node) {
  return dynamic_cast<const layers::Update*>(node.op.get());
}

// Returns the images of a step: an input, or a state if they are synthetic.
std::optional<TensorId> find_images(const Graph& graph) {
  const std::optional<TensorId> found = graph.find("images");
  const bool is_image =
      found && !graph.producer(*found) && graph.info(*found).desc.shape.rank() == 4 &&
      graph.info(*found).desc.layout != Layout::packed && graph.info(*found).desc.pitch == 0;
  return is_image ? found : std::nullopt;
}

std::size_t bytes_of_first_images(const TensorDesc& desc) {
  const auto examples = static_cast<std::size_t>(desc.shape[0]);
  return desc.bytes() / examples * std::min<std::size_t>(examples, max_images);
}

// Returns the index of an element in memory.
std::size_t place_in(const TensorDesc& desc, const std::array<std::int64_t, 4>& at) {
  const auto [n, c, y, x] = at;
  const Shape& shape = desc.shape;
  if (desc.layout == Layout::nchw) {
    return static_cast<std::size_t>(((n * shape[1] + c) * shape[2] + y) * shape[3] + x);
  }
  const std::int64_t pixel = (n * shape[2] + y) * shape[3] + x;  // one block has all channels
  return static_cast<std::size_t>(pixel * (desc.layout == Layout::nhwc ? shape[1] : channel_block) +
                                  c);
}

template <class T>
T element(const std::byte* data, std::size_t place) {
  T value;
  std::memcpy(&value, data + place * sizeof(T), sizeof(T));
  return value;
}

double value_at(const std::byte* data, std::size_t place, DataType type) {
  switch (type) {
    case DataType::u8:
      return element<std::uint8_t>(data, place);
    case DataType::f16:
      return to_float(element<Float16>(data, place));
    case DataType::bf16:
      return to_float(element<BFloat16>(data, place));
    case DataType::f32:
      return element<float>(data, place);
    case DataType::i32:
      break;
  }
  return 0;
}

// Bytes stay unchanged; other values are scaled like in TensorFlow: 0 stays black, or becomes grey
// if there are negative values, and the largest magnitude takes the whole range.
struct ToByte {
  double scale = 1, shift = 0;

  ToByte(std::span<const double> values, DataType type) {
    if (type == DataType::u8) {
      return;
    }
    constexpr double white = 255, grey = 127;
    double least = 0, most = 0;
    for (const double value : values) {
      least = std::isfinite(value) ? std::min(least, value) : least;
      most = std::isfinite(value) ? std::max(most, value) : most;
    }
    const double largest = std::max(most, -least);
    shift = least < 0 ? grey : 0;
    scale = largest > 0 ? (least < 0 ? grey : white) / largest : 0;
  }

  std::uint8_t operator()(double value) const {
    const double byte = std::isfinite(value) ? value * scale + shift : 0;
    return static_cast<std::uint8_t>(std::clamp(std::round(byte), 0.0, 255.0));
  }
};

StepSamples::Image image_of(const TensorDesc& desc, const std::byte* data, std::int64_t example) {
  constexpr std::int64_t colours = 3;
  const Shape& shape = desc.shape;
  const std::int64_t channels = shape[1];
  std::vector<double> values;
  for (std::int64_t y = 0; y < shape[2]; ++y) {
    for (std::int64_t x = 0; x < shape[3]; ++x) {
      for (std::int64_t c = 0; c < colours; ++c) {
        const std::int64_t channel = std::min(c, channels - 1);  // a grey image has one
        values.push_back(value_at(data, place_in(desc, {example, channel, y, x}), desc.type));
      }
    }
  }
  const ToByte to_byte(values, desc.type);
  StepSamples::Image image{.height = shape[2], .width = shape[3], .pixels = {}};
  image.pixels.reserve(values.size());
  for (const double value : values) {
    image.pixels.push_back(to_byte(value));
  }
  return image;
}

}  // namespace

StepSamples::StepSamples(const StepPlan& plan, const Backend& backend, Detail detail)
    : backend_(backend), detail_(detail), graph_(plan.graph) {
  images_id_ = detail == Detail::all ? find_images(*graph_) : std::nullopt;
  if (!backend.has_own_memory()) {
    return;
  }
  std::array<std::size_t, lane_count> bytes{};
  for (const Node& node : graph_->nodes()) {
    std::size_t& most = bytes.at(index_of_lane(node.op->lane()));
    if (const layers::Update* const update = update_of(node)) {
      for (std::size_t i = 0; i < update->parameters; ++i) {
        const TensorId gradient = node.inputs[update->first_gradient() + i];
        most = std::max(most, aligned(graph_->info(gradient).desc.extent()) + alignment);
      }
    }
    if (images_id_ && std::ranges::find(node.inputs, *images_id_) != node.inputs.end()) {
      most = std::max(most, bytes_of_first_images(graph_->info(*images_id_).desc));
    }
  }
  for (std::size_t lane = 0; lane < lane_count; ++lane) {
    if (bytes.at(lane) > 0) {
      copied_.at(lane) = backend.device->allocate_host(bytes.at(lane));
    }
  }
}

void StepSamples::begin(bool wanted) {
  wanted_ = wanted;
  images_taken_ = false;
  work_.clear();
  image_bytes_.clear();
}

void StepSamples::enqueued(NodeId node, const Operands& operands, Lane lane, Stream& stream) {
  if (!wanted_) {
    return;
  }
  const Node& source = graph_->nodes()[index_of(node)];
  if (update_of(source) != nullptr) {
    sample_gradients(source, operands, lane, stream);
  }
  if (images_id_ && !images_taken_) {
    const auto images = std::ranges::find(source.inputs, *images_id_);
    if (images != source.inputs.end()) {
      images_taken_ = true;
      sample_images(operands.in[static_cast<std::size_t>(images - source.inputs.begin())], lane,
                    stream);
    }
  }
}

std::byte* StepSamples::on_host(const TensorView& view, std::size_t bytes, std::byte* copy,
                                Stream& stream) {
  if (!backend_.has_own_memory()) {
    return view.data;
  }
  stream.copy(copy, view.data, bytes);
  return copy;
}

void StepSamples::sample_gradients(const Node& update, const Operands& operands, Lane lane,
                                   Stream& stream) {
  const layers::Update& op = *update_of(update);
  std::byte* const copy = copied_.at(index_of_lane(lane)).data();
  for (std::size_t i = 0; i < op.parameters; ++i) {
    const TensorView& gradient = operands.in[op.first_gradient() + i];
    const TensorId parameter = update.inputs[op.first_parameter() + i];
    Work& work = work_.emplace_back();
    work.parameter = graph_->info(parameter).name;
    work.view = gradient;
    if (op.attributes.automatic_loss_scale) {
      constexpr std::size_t loss_scale = 1;  // index among the inputs of an update
      work.variable = reinterpret_cast<const float*>(
          on_host(operands.in[loss_scale], sizeof(float), copy, stream));
    } else {
      work.scale = static_cast<float>(op.attributes.loss_scale);
    }
    std::byte* const behind = copy == nullptr ? nullptr : copy + alignment;
    work.view.data = on_host(gradient, gradient.desc.extent(), behind, stream);
    stream.host([this, &work] { count(work); });
  }
}

void StepSamples::count(Work& work) const {
  const double unscale = 1.0 / (work.scale ? *work.scale : *work.variable);
  const std::span<const float> elements = work.view.as<const float>();
  for (const float element : elements) {
    const double value = element * unscale;
    if (value != 0) {
      work.logs.add(std::log(std::abs(value)));
    }
    if (detail_ == Detail::all) {
      work.values.add(value);
    }
  }
  if (detail_ == Detail::all) {  // padding of packed weights is 0
    work.values.remove_zeros(static_cast<std::int64_t>(elements.size()) -
                             work.view.desc.shape.elements());
  }
}

void StepSamples::sample_images(const TensorView& view, Lane lane, Stream& stream) {
  const std::size_t bytes = bytes_of_first_images(view.desc);
  image_desc_ = view.desc;
  image_bytes_.resize(bytes);
  image_source_ = on_host(view, bytes, copied_.at(index_of_lane(lane)).data(), stream);
  stream.host([this] { std::memcpy(image_bytes_.data(), image_source_, image_bytes_.size()); });
}

Histogram StepSamples::log_gradients() const {
  Histogram all;
  for (const Work& work : work_) {
    all.merge(work.logs);
  }
  return all;
}

std::vector<StepSamples::Gradient> StepSamples::gradients() const {
  std::vector<Gradient> gradients;
  for (const Work& work : work_) {
    gradients.push_back({work.parameter, work.values});
  }
  return gradients;
}

std::vector<StepSamples::Image> StepSamples::images() const {
  std::vector<Image> images;
  if (!image_bytes_.empty() && (image_desc_.shape[1] == 1 || image_desc_.shape[1] == 3)) {
    for (std::int64_t i = 0; i < std::min(image_desc_.shape[0], max_images); ++i) {
      images.push_back(image_of(image_desc_, image_bytes_.data(), i));
    }
  }
  return images;
}

}  // namespace cnn::bench
