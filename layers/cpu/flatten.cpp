#include <algorithm>
#include <cstdint>
#include <string>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"
#include "layers/dense.h"
#include "runtime/error.h"

namespace cnn::layers::cpu {

namespace {

// An image whose channels lie in pieces: 1, 16 or all of a pixel are contiguous.
struct Pieces {
  explicit Pieces(const TensorDesc& image)
      : place(image),
        channels(image.shape[1]),
        width(image.layout == Layout::nchw   ? 1
              : image.layout == Layout::nhwc ? channels
                                             : 16) {}

  std::int64_t next() const { return place.pixels() * width; }  // from one piece to the next

  // Calls visit(pixel, index of its first channel) for pixels of the batch.
  template <class Visit>
  void each(std::int64_t first, std::int64_t last, const Visit& visit) const {
    const std::int64_t image = place.pixels() * place.stored_channels();
    std::int64_t n = first / place.pixels(), p = first % place.pixels();
    for (std::int64_t pixel = first; pixel < last; ++pixel) {
      visit(pixel, n * image + p * width);
      if (++p == place.pixels()) {
        p = 0;
        ++n;
      }
    }
  }

  Place place;
  std::int64_t channels, width;
};

template <class Word>
void copy_to_row(const Pieces& pieces, const Word* from, Word* row) {
  if (pieces.width == 1) {
    for (std::int64_t c = 0; c < pieces.channels; ++c) {
      row[c] = from[c * pieces.next()];
    }
    return;
  }
  for (std::int64_t c = 0; c < pieces.channels; c += pieces.width) {
    std::copy_n(from, std::min(pieces.width, pieces.channels - c), row + c);
    from += pieces.next();
  }
}

// The channels that pad the last piece become zero.
template <class Word>
void copy_from_row(const Pieces& pieces, const Word* row, Word* to) {
  if (pieces.width == 1) {
    for (std::int64_t c = 0; c < pieces.channels; ++c) {
      to[c * pieces.next()] = row[c];
    }
    return;
  }
  for (std::int64_t c = 0; c < pieces.channels; c += pieces.width) {
    const std::int64_t count = std::min(pieces.width, pieces.channels - c);
    std::copy_n(row + c, count, to);
    std::fill_n(to + count, pieces.width - count, Word{});
    to += pieces.next();
  }
}

// Calls body(first, last) for ranges of the pixels of the batch, on all threads.
template <class Body>
void parallel_pixels(const TensorDesc& image, const Body& body) {
  const Shape& shape = image.shape;
  parallel_for(shape[0] * shape[2] * shape[3], elements_per_thread / shape[1] + 1, body);
}

template <class Word>
void flatten_words(const Operands& o) {
  const Pieces pieces(o.in[0].desc);
  const auto* const from = reinterpret_cast<const Word*>(o.in[0].data);
  auto* const to = reinterpret_cast<Word*>(o.out[0].data);
  parallel_pixels(o.in[0].desc, [&](std::int64_t first, std::int64_t last) {
    pieces.each(first, last, [&](std::int64_t pixel, std::int64_t index) {
      copy_to_row(pieces, from + index, to + pixel * pieces.channels);
    });
  });
}

template <class Word>
void unflatten_words(const Operands& o) {
  const Pieces pieces(o.out[0].desc);
  const auto* const from = reinterpret_cast<const Word*>(o.in[0].data);
  auto* const to = reinterpret_cast<Word*>(o.out[0].data);
  parallel_pixels(o.out[0].desc, [&](std::int64_t first, std::int64_t last) {
    pieces.each(first, last, [&](std::int64_t pixel, std::int64_t index) {
      copy_from_row(pieces, from + pixel * pieces.channels, to + index);
    });
  });
}

// Returns the function for words of this size.
template <class Function>
Function for_size(DataType type, Function one, Function two, Function four) {
  switch (size_of(type)) {
    case 1:
      return one;
    case 2:
      return two;
    case 4:
      return four;
    default:
      throw Error("flatten: no words have the size of " + std::string(name_of(type)));
  }
}

void flatten(const Operands& o) {
  for_size(o.in[0].desc.type, flatten_words<std::uint8_t>, flatten_words<std::uint16_t>,
           flatten_words<std::uint32_t>)(o);
}

void unflatten(const Operands& o) {
  for_size(o.in[0].desc.type, unflatten_words<std::uint8_t>, unflatten_words<std::uint16_t>,
           unflatten_words<std::uint32_t>)(o);
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
