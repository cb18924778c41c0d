#include "layers/subsample.h"

#include <algorithm>
#include <cstring>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"

namespace cnn::layers::cpu {

namespace {

// Both images as [planes][rows][columns][contiguous channels], in bytes.
struct Planes {
  Planes(const TensorDesc& image, const TensorDesc& kept)
      : height(image.shape[2]),
        width(image.shape[3]),
        kept_height(kept.shape[2]),
        kept_width(kept.shape[3]) {
    const std::int64_t together = image.layout == Layout::nhwc      ? image.shape[1]
                                  : image.layout == Layout::nchw16c ? 16
                                                                    : 1;
    planes = image.shape[0] * Place(image).stored_channels() / together;
    pixel_bytes = static_cast<std::size_t>(together) * size_of(image.type);
  }
  std::size_t row_bytes() const { return static_cast<std::size_t>(width) * pixel_bytes; }
  std::size_t kept_row_bytes() const { return static_cast<std::size_t>(kept_width) * pixel_bytes; }
  // Returns the fewest rows that justify a thread.
  std::int64_t grain() const {
    constexpr std::int64_t bytes = elements_per_thread * 4;
    return bytes / static_cast<std::int64_t>(row_bytes()) + 1;
  }

  std::int64_t planes = 0, height, width, kept_height, kept_width;
  std::size_t pixel_bytes = 0;
};

// Copies the kept pixels of a row, `stride` apart in `image`, to consecutive pixels of `kept`.
template <class Copy>
void each_kept_pixel(const Window& w, const Planes& p, const Copy& copy) {
  const std::int64_t offset = -w.pad_left;
  for (std::int64_t q = 0; q < p.kept_width; ++q) {
    const std::int64_t column = q * w.stride_w + offset;
    copy(static_cast<std::size_t>(q) * p.pixel_bytes,
         static_cast<std::size_t>(column) * p.pixel_bytes, column < p.width);
  }
}

void keep_pixels(const Window& w, const Operands& o) {
  const Planes p(o.in[0].desc, o.out[0].desc);
  parallel_for(p.planes * p.kept_height, p.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i % p.kept_height * w.stride_h - w.pad_top;
      std::byte* const to = o.out[0].data + static_cast<std::size_t>(i) * p.kept_row_bytes();
      if (row >= p.height) {
        std::memset(to, 0, p.kept_row_bytes());
        continue;
      }
      const std::byte* const from =
          o.in[0].data +
          static_cast<std::size_t>(i / p.kept_height * p.height + row) * p.row_bytes();
      each_kept_pixel(w, p, [&](std::size_t kept, std::size_t pixel, bool inside_image) {
        if (inside_image) {
          std::memcpy(to + kept, from + pixel, p.pixel_bytes);
        } else {
          std::memset(to + kept, 0, p.pixel_bytes);
        }
      });
    }
  });
}

void spread_gradient(const Window& w, const Operands& o) {
  const Planes p(o.out[0].desc, o.in[0].desc);
  parallel_for(p.planes * p.height, p.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::byte* const to = o.out[0].data + static_cast<std::size_t>(i) * p.row_bytes();
      std::memset(to, 0, p.row_bytes());
      const std::int64_t row = i % p.height + w.pad_top;
      if (row < 0 || row % w.stride_h != 0 || row / w.stride_h >= p.kept_height) {
        continue;
      }
      const std::byte* const from =
          o.in[0].data + static_cast<std::size_t>(i / p.height * p.kept_height + row / w.stride_h) *
                             p.kept_row_bytes();
      each_kept_pixel(w, p, [&](std::size_t kept, std::size_t pixel, bool inside_image) {
        if (inside_image) {
          std::memcpy(to + pixel, from + kept, p.pixel_bytes);
        }
      });
    }
  });
}

// Accepts any type and any layout of images.
std::optional<KernelSpec> describe_pixels(const Signature& request) {
  const Layout layout = request.in[0].layout;
  return in_layout(request, layout == Layout::packed ? channels_together(request) : layout);
}

}  // namespace

void add_subsample_rows(KernelTable& table, const Loops& /*loops*/) {
  table.add<Subsample>(
      [](const Subsample&, const Signature& request) { return describe_pixels(request); },
      [](const Subsample& op, const Signature&) {
        return own_kernel([w = op.window](const Operands& o) { keep_pixels(w, o); });
      });
  table.add<SubsampleBackward>(
      [](const SubsampleBackward&, const Signature& request) { return describe_pixels(request); },
      [](const SubsampleBackward& op, const Signature&) {
        return own_kernel([w = op.window](const Operands& o) { spread_gradient(w, o); });
      });
}

}  // namespace cnn::layers::cpu
