#include "layers/concat.h"

#include <algorithm>
#include <cstring>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"
#include "runtime/divide_up.h"

namespace cnn::layers::cpu {

namespace {

// Channels from `first` on of an image. A source without data stands for zeros.
struct Channels {
  TensorView image;
  std::int64_t first = 0;
};

// Copies `rows` pieces of `bytes` each at the given strides, or writes zeros.
struct Pieces {
  const std::byte* from;
  std::byte* to;
  std::size_t from_stride, to_stride, bytes;

  void copy(std::int64_t rows) const {
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
      if (from == nullptr) {
        std::memset(to + i * to_stride, 0, bytes);
      } else {
        std::memcpy(to + i * to_stride, from + i * from_stride, bytes);
      }
    }
  }
};

// Copies one block of 16 channels of the target, or its part in [begin, end), from one or two
// blocks of the source.
void copy_block(const Channels& from, const Channels& to, std::int64_t n, std::int64_t begin,
                std::int64_t end) {
  const DataType type = to.image.desc.type;
  const Place target(to.image.desc);
  const std::int64_t pixels = target.pixels();
  const std::size_t stride = 16 * size_of(type);
  while (begin < end) {
    Pieces pieces{nullptr, at(to.image, target(n, begin, 0)), stride, stride, 0};
    std::int64_t count = end - begin;
    if (from.image.data != nullptr) {
      const std::int64_t channel = begin - to.first + from.first;
      count = std::min(count, 16 - channel % 16);
      pieces.from = at(from.image, Place(from.image.desc)(n, channel, 0));
    }
    pieces.bytes = static_cast<std::size_t>(count) * size_of(type);
    if (count == 16) {  // whole pixels are contiguous
      pieces.bytes *= static_cast<std::size_t>(pixels);
      pieces.copy(1);
    } else {
      pieces.copy(pixels);
    }
    begin += count;
  }
}

void copy_blocked(const Channels& from, const Channels& to, std::int64_t count) {
  const std::int64_t end = to.first + count;
  const std::int64_t block = to.first / 16;
  const std::int64_t blocks = divide_up(end, 16) - block;
  const std::int64_t pixels = to.image.desc.shape[2] * to.image.desc.shape[3];
  parallel_for(to.image.desc.shape[0] * blocks, elements_per_thread / (pixels * 16) + 1,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t i = first; i < last; ++i) {
                   const std::int64_t base = (block + i % blocks) * 16;
                   copy_block(from, to, i / blocks, std::max(base, to.first),
                              std::min(base + 16, end));
                 }
               });
}

// Copies `count` channels. In nchw16c the target range may extend into its padding.
void copy_channels(const Channels& from, const Channels& to, std::int64_t count) {
  const TensorDesc& desc = to.image.desc;
  if (count == 0) {
    return;
  }
  if (desc.layout == Layout::nchw16c) {
    copy_blocked(from, to, count);
    return;
  }
  // Rows are [rows][channels][size]: a row is a pixel in nhwc, an image in nchw.
  const std::int64_t pixels = desc.shape[2] * desc.shape[3];
  const std::int64_t size = desc.layout == Layout::nhwc ? 1 : pixels;
  const std::int64_t rows = desc.shape[0] * pixels / size;
  const std::size_t unit = static_cast<std::size_t>(size) * size_of(desc.type);
  const auto stride = [&](const Channels& c) {
    return static_cast<std::size_t>(c.image.desc.shape[1]) * unit;
  };
  const auto start = [&](const Channels& c, std::int64_t row) {
    return c.image.data + static_cast<std::size_t>(row) * stride(c) +
           static_cast<std::size_t>(c.first) * unit;
  };
  parallel_for(rows, elements_per_thread / (count * size) + 1,
               [&](std::int64_t first, std::int64_t last) {
                 const bool zero = from.image.data == nullptr;
                 Pieces{zero ? nullptr : start(from, first), start(to, first),
                        zero ? 0 : stride(from), stride(to), static_cast<std::size_t>(count) * unit}
                     .copy(last - first);
               });
}

// Writes zeros from channel `first` to the end, padding included.
void zero_rest(const TensorView& image, std::int64_t first) {
  copy_channels({}, {image, first}, Place(image.desc).stored_channels() - first);
}

void join(const Operands& o) {
  std::int64_t channel = 0;
  for (const TensorView& part : o.in) {
    copy_channels({part, 0}, {o.out[0], channel}, part.desc.shape[1]);
    channel += part.desc.shape[1];
  }
  zero_rest(o.out[0], channel);
}

void split(const Operands& o) {
  std::int64_t channel = 0;
  for (const TensorView& part : o.out) {
    copy_channels({o.in[0], channel}, {part, 0}, part.desc.shape[1]);
    channel += part.desc.shape[1];
    zero_rest(part, part.desc.shape[1]);
  }
}

// Accepts any type and any layout of images.
std::optional<KernelSpec> describe(const Signature& request) {
  const Layout layout = request.in[0].layout;
  return in_layout(request, layout == Layout::packed ? channels_together(request) : layout);
}

}  // namespace

void add_concat_rows(KernelTable& table, const Loops& /*loops*/) {
  const auto describe_any = [](const auto& /*op*/, const Signature& request) {
    return describe(request);
  };
  table.add<Concat>(describe_any, [](const Concat&, const Signature&) { return own_kernel(join); });
  table.add<Split>(describe_any, [](const Split&, const Signature&) { return own_kernel(split); });
  table.add<PadChannels>(describe_any, [](const PadChannels& op, const Signature&) {
    return own_kernel([before = op.before](const Operands& o) {
      const std::int64_t channels = o.in[0].desc.shape[1];
      copy_channels({}, {o.out[0], 0}, before);
      copy_channels({o.in[0], 0}, {o.out[0], before}, channels);
      zero_rest(o.out[0], before + channels);
    });
  });
  table.add<SliceChannels>(describe_any, [](const SliceChannels& op, const Signature&) {
    return own_kernel([first = op.first, count = op.count](const Operands& o) {
      copy_channels({o.in[0], first}, {o.out[0], 0}, count);
      zero_rest(o.out[0], count);
    });
  });
}

}  // namespace cnn::layers::cpu
