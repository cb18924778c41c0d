#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "layers/column_slice.h"
#include "layers/concat.h"
#include "layers/cuda/flat.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/row_slice.h"

// Concat, Split, PadChannels and SliceChannels of images in nhwc, and copies of rows of images and
// of columns of matrices, as batches of 2-D (strided) copies. Memory traffic is that of a copy:
// every byte is read once and written once. Padding zeros are only written, and channels that
// already lie in place are not copied.
namespace cnn::layers::cuda {

namespace {

// A 2-D copy: the same channels of every pixel, from one image to another. All sizes are in bytes.
struct Piece {
  const std::byte* from = nullptr;  // in the first pixel; nullptr: writes zeros
  std::byte* to = nullptr;
  std::int64_t from_pitch = 0, to_pitch = 0;  // from one pixel to the next
  std::int64_t bytes = 0;                     // copied per pixel
};

constexpr std::size_t max_pieces = 64;
struct Pieces {
  Piece piece[max_pieces];
};

// A grid-stride iterator over the units (elements of one access) of a piece, numbered over all
// pixels. It tracks pixel and unit separately, so that an increment needs no division.
template <class Unit>
class StridedIterator {
 public:
  __device__ StridedIterator(const Piece& piece, std::int64_t pixels)
      : piece_(piece),
        pixels_(pixels),
        units_(piece.bytes / static_cast<std::int64_t>(sizeof(Unit))),
        stride_pixels_(flat_stride() / units_),
        stride_units_(flat_stride() % units_),
        pixel_(flat_thread() / units_),
        unit_(flat_thread() % units_) {}

  __device__ bool done() const { return pixel_ >= pixels_; }
  __device__ Unit* to() const {
    return done() ? nullptr : reinterpret_cast<Unit*>(piece_.to + pixel_ * piece_.to_pitch) + unit_;
  }
  __device__ Unit read() const {
    return done() || piece_.from == nullptr
               ? Unit{}
               : reinterpret_cast<const Unit*>(piece_.from + pixel_ * piece_.from_pitch)[unit_];
  }
  __device__ void step() {
    pixel_ += stride_pixels_;
    unit_ += stride_units_;
    if (unit_ >= units_) {
      unit_ -= units_;
      ++pixel_;
    }
  }

 private:
  const Piece& piece_;
  std::int64_t pixels_, units_;
  std::int64_t stride_pixels_, stride_units_;
  std::int64_t pixel_, unit_;
};

constexpr int loads_in_flight = 4;  // per thread

// Copies piece blockIdx.y.
template <class Unit>
__global__ void __launch_bounds__(flat_threads) copy_pieces(Pieces pieces, std::int64_t pixels) {
  const Piece piece = pieces.piece[blockIdx.y];
  StridedIterator<Unit> next(piece, pixels);
  while (!next.done()) {
    Unit values[loads_in_flight];
    Unit* to[loads_in_flight];
#pragma unroll
    for (int i = 0; i < loads_in_flight; ++i) {
      values[i] = next.read();
      to[i] = next.to();
      next.step();
    }
#pragma unroll
    for (int i = 0; i < loads_in_flight; ++i) {
      if (to[i] != nullptr) {
        *to[i] = values[i];
      }
    }
  }
}

template <class Unit>
void launch_copy(Stream& stream, std::span<const Piece> pieces, std::int64_t pixels) {
  std::int64_t max_bytes = 0;
  Pieces table{};
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    table.piece[i] = pieces[i];
    max_bytes = std::max(max_bytes, pieces[i].bytes);
  }
  const auto unit = static_cast<std::int64_t>(sizeof(Unit));
  const std::int64_t resident_blocks =
      cnn::cuda::max_resident_blocks(copy_pieces<Unit>, flat_threads, 0);
  dim3 grid = flat_grid(pixels * max_bytes / unit / loads_in_flight, resident_blocks);
  grid.y = static_cast<unsigned>(pieces.size());
  cnn::cuda::launch(copy_pieces<Unit>, grid, flat_threads, 0, stream, table, pixels);
}

// Returns the size in bytes of the widest access, at most 16, that divides every size, pitch and
// address of the pieces.
std::int64_t unit_of(std::span<const Piece> pieces) {
  std::int64_t all = 16;
  for (const Piece& piece : pieces) {
    const auto address = [](const std::byte* p) {
      return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p));
    };
    all |=
        piece.bytes | piece.from_pitch | piece.to_pitch | address(piece.from) | address(piece.to);
  }
  return all & -all;  // the lowest set bit of all of them
}

void copy(Stream& stream, std::span<const Piece> pieces, std::int64_t pixels) {
  while (!pieces.empty() && pixels > 0) {
    const auto some = pieces.first(std::min(max_pieces, pieces.size()));
    switch (unit_of(some)) {
      case 16:
        launch_copy<Pack<std::uint32_t, 4>>(stream, some, pixels);
        break;
      case 8:
        launch_copy<Pack<std::uint32_t, 2>>(stream, some, pixels);
        break;
      case 4:
        launch_copy<std::uint32_t>(stream, some, pixels);
        break;
      case 2:
        launch_copy<std::uint16_t>(stream, some, pixels);
        break;
      default:
        launch_copy<std::uint8_t>(stream, some, pixels);
        break;
    }
    pieces = pieces.subspan(some.size());
  }
}

// A copy of `count` channels, from channel `from_first` of one image to channel `to_first` of
// another. A source without data stands for zeros.
struct Channels {
  TensorView from, to;
  std::int64_t from_first = 0, to_first = 0, count = 0;

  Piece piece() const {
    const auto size = static_cast<std::int64_t>(size_of(to.desc.type));
    Piece result{.to = to.data + to_first * size,
                 .to_pitch = pitch_of(to.desc) * size,
                 .bytes = count * size};
    if (from.data != nullptr) {
      result.from = from.data + from_first * size;
      result.from_pitch = pitch_of(from.desc) * size;
    }
    return result;
  }
};

// Returns whether source and destination are the same memory, as after concat_in_place().
bool is_in_place(const Piece& piece) {
  return piece.from == piece.to && piece.from_pitch == piece.to_pitch;
}

void copy_channels(Stream& stream, std::span<const Channels> parts) {
  std::vector<Piece> pieces;
  for (const Channels& part : parts) {
    const Piece piece = part.piece();
    if (part.count > 0 && !is_in_place(piece)) {
      pieces.push_back(piece);
    }
  }
  const Shape& shape = parts.front().to.desc.shape;
  copy(stream, pieces, shape[0] * shape[2] * shape[3]);
}

void join(Stream& stream, const Operands& o) {
  std::vector<Channels> parts;
  std::int64_t first = 0;
  for (const TensorView& part : o.in) {
    const std::int64_t count = part.desc.shape[1];
    parts.push_back({.from = part, .to = o.out[0], .to_first = first, .count = count});
    first += count;
  }
  copy_channels(stream, parts);
}

void split(Stream& stream, const Operands& o) {
  std::vector<Channels> parts;
  std::int64_t first = 0;
  for (const TensorView& part : o.out) {
    const std::int64_t count = part.desc.shape[1];
    parts.push_back({.from = o.in[0], .to = part, .from_first = first, .count = count});
    first += count;
  }
  copy_channels(stream, parts);
}

void pad(Stream& stream, const Operands& o, const PadChannels& op) {
  const std::int64_t channels = o.in[0].desc.shape[1];
  const TensorView& y = o.out[0];
  copy_channels(stream,
                std::array<Channels, 3>{
                    {{.from = {}, .to = y, .count = op.before},
                     {.from = o.in[0], .to = y, .to_first = op.before, .count = channels},
                     {.from = {}, .to = y, .to_first = op.before + channels, .count = op.after}}});
}

// Rows [from_first, from_first + count) of every image of a batch, copied to rows from `to_first`
// on of another batch. A source without data stands for zeros.
struct RowRange {
  TensorView from, to;
  std::int64_t from_first = 0, to_first = 0, count = 0;
};

void copy_row_range(Stream& stream, const RowRange& range) {
  const auto size = static_cast<std::int64_t>(size_of(range.to.desc.type));
  const Shape& shape = range.to.desc.shape;
  const auto row = [&](const TensorView& image, std::int64_t n, std::int64_t first) {
    return image.data + (n * image.desc.shape[2] + first) * shape[3] * pitch_of(image.desc) * size;
  };
  std::vector<Piece> pieces;
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    Piece piece{.to = row(range.to, n, range.to_first),
                .to_pitch = pitch_of(range.to.desc) * size,
                .bytes = shape[1] * size};
    if (range.from.data != nullptr) {
      piece.from = row(range.from, n, range.from_first);
      piece.from_pitch = pitch_of(range.from.desc) * size;
    }
    pieces.push_back(piece);
  }
  copy(stream, pieces, range.count * shape[3]);
}

void take_rows(Stream& stream, const Operands& o, const SliceRows& op) {
  copy_row_range(stream,
                 {.from = o.in[0], .to = o.out[0], .from_first = op.first, .count = op.count});
}

void return_rows(Stream& stream, const Operands& o, const SliceRowsBackward& op) {
  const TensorView& y = o.out[0];
  const std::int64_t end = op.first + o.in[0].desc.shape[2];
  copy_row_range(stream, {.from = {}, .to = y, .count = op.first});
  copy_row_range(stream, {.from = o.in[0], .to = y, .to_first = op.first, .count = end - op.first});
  copy_row_range(stream, {.from = {}, .to = y, .to_first = end, .count = op.height - end});
}

void join_rows(Stream& stream, const Operands& o) {
  std::int64_t first = 0;
  for (const TensorView& part : o.in) {
    const std::int64_t count = part.desc.shape[2];
    copy_row_range(stream, {.from = part, .to = o.out[0], .to_first = first, .count = count});
    first += count;
  }
}

// Returns a piece whose pixels are the rows of matrices: all columns of the narrower one.
Piece columns_piece(const ColumnRange& from, const ColumnRange& to) {
  return {.from = from.data,
          .to = to.data,
          .from_pitch = static_cast<std::int64_t>(from.pitch),
          .to_pitch = static_cast<std::int64_t>(to.pitch),
          .bytes = static_cast<std::int64_t>(std::min(from.pitch, to.pitch))};
}

void take_columns(Stream& stream, const Operands& o, const SliceColumns& op) {
  const Piece piece = columns_piece(columns_from(o.in[0], op.first), columns_from(o.out[0], 0));
  copy(stream, std::span(&piece, 1), o.out[0].desc.shape[0]);
}

void join_columns(Stream& stream, const Operands& o) {
  std::vector<Piece> pieces;
  std::int64_t first = 0;
  for (const TensorView& part : o.in) {
    pieces.push_back(columns_piece(columns_from(part, 0), columns_from(o.out[0], first)));
    first += part.desc.shape[1];
  }
  copy(stream, pieces, o.out[0].desc.shape[0]);
}

void add_columns_of_matrices(KernelTable& table) {
  const auto describe = [](const auto& /*op*/, const Signature& request) {
    return std::optional(in_nhwc(request));
  };
  table.add<SliceColumns>(describe, [](const SliceColumns& op, const Signature&) {
    return own_kernel([op](Stream& stream, const Operands& o) { take_columns(stream, o, op); });
  });
  table.add<ConcatColumns>(
      describe, [](const ConcatColumns&, const Signature&) { return own_kernel(join_columns); });
}

// Rows of images in any type; a slice may lie inside a concatenation, and so may its gradient.
KernelSpec describe_rows(const Signature& request) {
  KernelSpec spec = in_nhwc(request);
  for (std::size_t i = 0; i < request.in.size(); ++i) {
    keep_pitch(spec.in[i], request.in[i]);
  }
  keep_pitch(spec.out[0], request.out[0]);
  return spec;
}

void add_rows_of_images(KernelTable& table) {
  const auto describe = [](const auto& /*op*/, const Signature& request) {
    return std::optional(describe_rows(request));
  };
  table.add<SliceRows>(describe, [](const SliceRows& op, const Signature&) {
    return own_kernel([op](Stream& stream, const Operands& o) { take_rows(stream, o, op); });
  });
  table.add<SliceRowsBackward>(describe, [](const SliceRowsBackward& op, const Signature&) {
    return own_kernel([op](Stream& stream, const Operands& o) { return_rows(stream, o, op); });
  });
  table.add<ConcatRows>(describe,
                        [](const ConcatRows&, const Signature&) { return own_kernel(join_rows); });
}

}  // namespace

void add_concat_rows(KernelTable& table) {
  add_rows_of_images(table);
  add_columns_of_matrices(table);
  const auto describe = [](const auto& /*op*/, const Signature& request) {
    return describe_floats(request);
  };
  table.add<Concat>(
      [](const Concat&, const Signature& request) {
        std::optional<KernelSpec> spec = describe_floats(request);
        for (std::size_t i = 0; spec && i < request.in.size(); ++i) {
          keep_pitch(spec->in[i], request.in[i]);
        }
        return spec;
      },
      [](const Concat&, const Signature&) { return own_kernel(join); });
  table.add<Split>(
      [](const Split&, const Signature& request) {
        std::optional<KernelSpec> spec = describe_floats(request);
        for (std::size_t i = 0; spec && i < request.out.size(); ++i) {
          keep_pitch(spec->out[i], request.out[i]);
        }
        return spec;
      },
      [](const Split&, const Signature&) { return own_kernel(split); });
  table.add<PadChannels>(describe, [](const PadChannels& op, const Signature&) {
    return own_kernel([op](Stream& stream, const Operands& o) { pad(stream, o, op); });
  });
  table.add<SliceChannels>(describe, [](const SliceChannels& op, const Signature&) {
    return own_kernel([first = op.first, count = op.count](Stream& stream, const Operands& o) {
      const Channels part{.from = o.in[0], .to = o.out[0], .from_first = first, .count = count};
      copy_channels(stream, std::span(&part, 1));
    });
  });
}

}  // namespace cnn::layers::cuda
