#include "layers/concat.h"

#include <algorithm>
#include <array>

#include "layers/operands.h"

namespace cnn::layers {

namespace {

// Copies `count` channels of each image, from channel `from_first` to channel `to_first`.
struct ChannelCopy {
  std::int64_t from_first = 0, to_first = 0, count = 0;
};

void copy_channels(const TensorView& from, const TensorView& to, const ChannelCopy& part) {
  const Dims a = dims(from.desc.shape);
  const Dims b = dims(to.desc.shape);
  for (std::int64_t n = 0; n < a.n; ++n) {
    std::copy_n(from.as<float>().data() + (n * a.c + part.from_first) * a.pixels(),
                part.count * a.pixels(),
                to.as<float>().data() + (n * b.c + part.to_first) * b.pixels());
  }
}

Shape with_channels(Shape shape, std::int64_t channels) {
  shape[1] = channels;
  return shape;
}

void require_image(const Op& op, std::span<const TensorDesc> in) {
  require_count(op, in, 1);
  require(in[0].shape.rank() == 4 && is_real(in[0].type), op, in, "takes real images");
}

}  // namespace

std::vector<TensorDesc> Concat::infer(std::span<const TensorDesc> in) const {
  require(!in.empty(), *this, in, "takes at least one operand");
  std::int64_t channels = 0;
  for (const TensorDesc& desc : in) {
    require(desc.shape.rank() == 4 && is_real(desc.type) && desc.type == in[0].type &&
                with_channels(desc.shape, 1) == with_channels(in[0].shape, 1),
            *this, in, "takes real images that differ in their channels only");
    channels += desc.shape[1];
  }
  return {described(with_channels(in[0].shape, channels), in[0].type)};
}

void Concat::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  std::int64_t first = 0;
  for (const TensorView& part : in) {
    const std::int64_t count = part.desc.shape[1];
    copy_channels(part, out[0], {.from_first = 0, .to_first = first, .count = count});
    first += count;
  }
}

std::vector<std::optional<Value>> Concat::backward(const Backprop& b) const {
  std::vector<std::int64_t> channels;
  for (const Value& part : b.in) {
    channels.push_back(part.desc().shape[1]);
  }
  const std::vector<Value> parts =
      emit_all(Split(std::move(channels)), std::vector<Value>{*b.grad[0]});
  return {parts.begin(), parts.end()};
}

std::vector<TensorDesc> Split::infer(std::span<const TensorDesc> in) const {
  require_image(*this, in);
  std::int64_t sum = 0;
  std::vector<TensorDesc> result;
  for (const std::int64_t count : channels) {
    result.push_back(described(with_channels(in[0].shape, count), in[0].type));
    sum += count;
  }
  require(sum == in[0].shape[1], *this, in, "the parts must cover all channels");
  return result;
}

void Split::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  std::int64_t first = 0;
  for (const TensorView& part : out) {
    const std::int64_t count = part.desc.shape[1];
    copy_channels(in[0], part, {.from_first = first, .to_first = 0, .count = count});
    first += count;
  }
}

std::vector<TensorDesc> PadChannels::infer(std::span<const TensorDesc> in) const {
  require_image(*this, in);
  return {described(with_channels(in[0].shape, before + in[0].shape[1] + after), in[0].type)};
}

void PadChannels::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  std::ranges::fill(out[0].as<float>(), 0.0F);
  copy_channels(in[0], out[0], {.from_first = 0, .to_first = before, .count = in[0].desc.shape[1]});
}

std::vector<std::optional<Value>> PadChannels::backward(const Backprop& b) const {
  return {emit(SliceChannels(before, b.in[0].desc().shape[1]), {*b.grad[0]})};
}

std::vector<TensorDesc> SliceChannels::infer(std::span<const TensorDesc> in) const {
  require_image(*this, in);
  require(first >= 0 && first + count <= in[0].shape[1], *this, in, "the slice is outside");
  return {described(with_channels(in[0].shape, count), in[0].type)};
}

void SliceChannels::reference(std::span<const TensorView> in,
                              std::span<const TensorView> out) const {
  copy_channels(in[0], out[0], {.from_first = first, .to_first = 0, .count = count});
}

Value concat(std::span<const Value> parts) { return emit_all(Concat(), parts).front(); }

Value pad_channels(Value x, std::int64_t before, std::int64_t after) {
  return emit(PadChannels(before, after), {x});
}

}  // namespace cnn::layers
