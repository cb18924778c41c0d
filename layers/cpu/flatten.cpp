#include <algorithm>
#include <cstring>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"
#include "layers/dense.h"

namespace cnn::layers::cpu {

namespace {

// Moves elements of nchw in pieces of as many channels as are contiguous in the image's layout: 1,
// 16 or all.
class Pieces {
 public:
  explicit Pieces(const TensorDesc& image)
      : place_(image),
        channels_(image.shape[1]),
        width_(image.layout == Layout::nchw   ? 1
               : image.layout == Layout::nhwc ? channels_
                                              : 16) {}

  // Calls visit(index in the image, index in the matrix, existing channels, stored channels) for
  // all pieces of image n.
  template <class Visit>
  void each(std::int64_t n, const Visit& visit) const {
    for (std::int64_t c = 0; c < channels_; c += width_) {
      const std::int64_t count = std::min(width_, channels_ - c);
      for (std::int64_t p = 0; p < place_.pixels(); ++p) {
        visit(place_(n, c, p), (n * place_.pixels() + p) * channels_ + c, count, width_);
      }
    }
  }

 private:
  Place place_;
  std::int64_t channels_, width_;
};

std::size_t bytes(std::int64_t elements, DataType type) {
  return static_cast<std::size_t>(elements) * size_of(type);
}

// Calls body(n) for all images, on all threads.
template <class Body>
void each_image(const TensorDesc& image, const Body& body) {
  const std::int64_t images = image.shape[0];
  parallel_for(images, elements_per_thread * images / image.shape.elements() + 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t n = begin; n < end; ++n) {
                   body(n);
                 }
               });
}

void flatten(const Operands& o) {
  const DataType type = o.in[0].desc.type;
  const Pieces pieces(o.in[0].desc);
  each_image(o.in[0].desc, [&](std::int64_t n) {
    pieces.each(n, [&](std::int64_t image, std::int64_t row, std::int64_t count, std::int64_t) {
      std::memcpy(at(o.out[0], row), at(o.in[0], image), bytes(count, type));
    });
  });
}

void unflatten(const Operands& o) {
  const DataType type = o.in[0].desc.type;
  const Pieces pieces(o.out[0].desc);
  each_image(o.out[0].desc, [&](std::int64_t n) {
    pieces.each(n,
                [&](std::int64_t image, std::int64_t row, std::int64_t count, std::int64_t stored) {
                  std::memcpy(at(o.out[0], image), at(o.in[0], row), bytes(count, type));
                  std::memset(at(o.out[0], image + count), 0, bytes(stored - count, type));
                });
  });
}

}  // namespace

// Accepts any type and any layout of images; the matrix is row-major.
void add_flatten_rows(KernelTable& table, const Loops& /*loops*/) {
  table.add<Flatten>(
      [](const Flatten&, const Signature& request) -> std::optional<KernelSpec> {
        const Layout layout = request.in[0].layout;
        return in_layout(request, layout == Layout::packed ? Layout::nhwc : layout);
      },
      [](const Flatten&, const Signature&) { return own_kernel(flatten); });
  table.add<Unflatten>(
      [](const Unflatten&, const Signature& request) -> std::optional<KernelSpec> {
        const Layout layout = request.out[0].layout;
        return in_layout(request, layout == Layout::packed ? Layout::nhwc : layout);
      },
      [](const Unflatten&, const Signature&) { return own_kernel(unflatten); });
}

}  // namespace cnn::layers::cpu
