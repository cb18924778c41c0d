#include "layers/cpu/pointwise_conv.h"

#include <algorithm>
#include <array>

#include "runtime/divide_up.h"

namespace cnn::layers::cpu {
namespace {

// Pixels that are copied and multiplied at a time at most.
constexpr std::int64_t most_copied_pixels = 24;

// Fewer output channels for an item would not repay its pass over the input channels.
constexpr std::int64_t min_slab = 64;

// Rows of a power of two of bytes would compete for the same sets of a cache.
std::int64_t row_of(std::int64_t channels) { return channels + pointwise_block; }

// Returns the places of copied pixels.
BlockStrides copied(std::int64_t channels) {
  return {.image = 0, .block = pointwise_block, .pixel = row_of(channels)};
}

}  // namespace

// Results are split into slabs of channels, too, where pixels do not suffice for all threads.
PointwiseConvolution::PointwiseConvolution(const PointwiseConvProblem& problem, const Loops& loops)
    : problem_(problem), loops_(&loops), team_(team_size()) {
  constexpr std::int64_t items_of_thread = 4;
  slabs_ = std::clamp<std::int64_t>(divide_up(items_of_thread * team_, tiles()), 1,
                                    std::max<std::int64_t>(1, problem.outs() / min_slab));
}

std::int64_t PointwiseConvolution::most_pixels() const {
  return problem_.gathers() || problem_.scatters() ? most_copied_pixels : loops_->pointwise_pixels;
}

// Each thread has as many tiles, if there are enough.
std::int64_t PointwiseConvolution::tiles() const {
  const std::int64_t tiles = divide_up(problem_.pixels(), most_pixels());
  return tiles < team_ ? tiles : divide_up(tiles, team_) * team_;
}

PointwiseConvolution::Item PointwiseConvolution::item(std::int64_t number) const {
  const std::int64_t tile = number / slabs_, slab = number % slabs_;
  const std::int64_t first = problem_.pixels() * tile / tiles();
  const std::int64_t blocks = problem_.outs() / pointwise_block;
  const std::int64_t first_out = blocks * slab / slabs_ * pointwise_block;
  return {.first = first,
          .count = problem_.pixels() * (tile + 1) / tiles() - first,
          .first_out = first_out,
          .outs = blocks * (slab + 1) / slabs_ * pointwise_block - first_out};
}

std::size_t PointwiseConvolution::workspace() const {
  BumpAllocator allocator;
  carve(allocator);
  return allocator.bytes();
}

PointwiseConvolution::Scratch PointwiseConvolution::carve(BumpAllocator& allocator) const {
  const std::int64_t ins = problem_.ins(), outs = problem_.outs();
  Scratch scratch{};
  scratch.weights = allocator.take<float>(problem_.backward ? ins * outs : 0);
  const std::int64_t pixels = team_ * most_copied_pixels;
  scratch.buffers.gathered = allocator.take<float>(problem_.gathers() ? pixels * row_of(ins) : 0);
  scratch.buffers.sums = allocator.take<float>(problem_.scatters() ? pixels * row_of(outs) : 0);
  return scratch;
}

void PointwiseConvolution::operator()(const Operands& o) const {
  BumpAllocator allocator(o.workspace);
  const Scratch scratch = carve(allocator);
  const float* w = o.in[1].as<float>().data();
  if (problem_.backward) {
    transpose(w, scratch.weights);
    w = scratch.weights;
  }
  if (problem_.backward && problem_.has_stride()) {
    clear_unread(o.out[0].data);
  }
  const std::int64_t items = tiles() * slabs_;
  parallel_for(team_, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t share = begin; share < end; ++share) {
      const std::int64_t pixels = share * most_copied_pixels;
      const Buffers buffers{scratch.buffers.gathered + pixels * row_of(problem_.ins()),
                            scratch.buffers.sums + pixels * row_of(problem_.outs())};
      for (std::int64_t i = items * share / team_; i < items * (share + 1) / team_; ++i) {
        run_item(o, item(i), w, buffers);
      }
    }
  });
}

void PointwiseConvolution::run_item(const Operands& o, const Item& item, const float* w,
                                    const Buffers& buffers) const {
  const TensorDesc& from = problem_.backward ? problem_.y : problem_.x;
  const TensorDesc& to = problem_.backward ? problem_.x : problem_.y;
  const BlockStrides of_x = problem_.gathers() ? copied(problem_.ins()) : block_strides(from);
  const BlockStrides of_y = problem_.scatters() ? copied(problem_.outs()) : block_strides(to);
  const std::int64_t out_block = item.first_out / pointwise_block;
  std::array<PointwiseRun, max_product_pixels> runs;
  PointwiseProduct product{.runs = runs.data(),
                           .w = w + item.first_out * problem_.ins(),
                           .ins = problem_.ins(),
                           .outs = item.outs,
                           .x_pixel = of_x.pixel,
                           .x_block = of_x.block,
                           .y_pixel = of_y.pixel,
                           .y_block = of_y.block};
  if (problem_.gathers()) {
    gather(o, item, buffers.gathered);
  }
  each_dense_run(item, [&](const PixelRun& pixels, std::int64_t before) {
    PointwiseRun& run = runs[static_cast<std::size_t>(product.run_count++)];
    run = {.pixels = pixels.count};
    run.x = problem_.gathers()
                ? buffers.gathered + before * of_x.pixel
                : o.in[0].as<float>().data() + of_x.place(pixels.image, 0, pixels.first_y);
    if (problem_.scatters()) {
      run.y = buffers.sums + before * of_y.pixel;
      return;
    }
    const std::int64_t at = of_y.place(pixels.image, out_block, pixels.first_y);
    run.y = o.out[0].as<float>().data() + at;
    run.residual = problem_.residual ? o.in.back().as<float>().data() + at : nullptr;
  });
  if (!problem_.scatters()) {
    product.relu = problem_.relu;
    product.bias = problem_.bias ? o.in[2].as<float>().data() + item.first_out : nullptr;
  }
  loops_->pointwise_product(product);
  if (problem_.scatters()) {
    scatter(o, item, buffers.sums);
  }
}

// Calls visit(run, pixels before it) for the pixels of an item that are equally far apart where
// products read and write them: all of them, or in blocks of channels those of an image.
template <class Visit>
void PointwiseConvolution::each_dense_run(const Item& item, const Visit& visit) const {
  if (problem_.x.layout == Layout::nhwc || (problem_.gathers() && problem_.scatters())) {
    visit(PixelRun{.first_y = item.first, .count = item.count}, 0);
  } else {
    each_run({problem_.y.shape, problem_.y.shape}, item.first, item.count, visit);
  }
}

// Calls visit(place) for the runs of an item's pixels in x or y, from a block of channels on.
template <class Visit>
void PointwiseConvolution::each_place(bool of_x, const Item& item, std::int64_t block,
                                      const Visit& visit) const {
  const TensorDesc& image = of_x ? problem_.x : problem_.y;
  const BlockStrides strides = block_strides(image);
  const auto size = static_cast<std::int64_t>(size_of(image.type));
  each_run(problem_.pixels_of_x(), item.first, item.count,
           [&](const PixelRun& run, std::int64_t before) {
             const std::int64_t first = of_x ? run.first_x : run.first_y;
             visit(Place{.before = before,
                         .count = run.count,
                         .bytes = size * strides.place(run.image, block, first),
                         .pixel = strides.pixel * (of_x ? run.step_x : 1),
                         .block = strides.block});
           });
}

void PointwiseConvolution::gather(const Operands& o, const Item& item, float* to) const {
  const TypedLoops& loops = loops_of(*loops_, problem_.x.type);
  const std::int64_t row = row_of(problem_.ins());
  each_place(!problem_.backward, item, 0, [&](const Place& place) {
    loops.gather({.from = o.in[0].data + place.bytes,
                  .to = to + place.before * row,
                  .pixels = place.count,
                  .blocks = problem_.ins() / pointwise_block,
                  .from_pixel = place.pixel,
                  .from_block = place.block,
                  .to_pixel = row,
                  .to_block = pointwise_block});
  });
}

void PointwiseConvolution::scatter(const Operands& o, const Item& item, const float* sums) const {
  const TypedLoops& loops = loops_of(*loops_, problem_.x.type);
  const std::int64_t row = row_of(problem_.outs());
  each_place(problem_.backward, item, item.first_out / pointwise_block, [&](const Place& place) {
    loops.scatter({.from = sums + place.before * row,
                   .to = o.out[0].data + place.bytes,
                   .pixels = place.count,
                   .blocks = item.outs / pointwise_block,
                   .from_pixel = row,
                   .to_pixel = place.pixel,
                   .to_block = place.block,
                   .bias = problem_.bias ? o.in[2].as<float>().data() + item.first_out : nullptr,
                   .residual = problem_.residual ? o.in.back().data + place.bytes : nullptr,
                   .relu = problem_.relu});
  });
}

// Writes [I/16][O][16] from [O/16][I][16].
void PointwiseConvolution::transpose(const float* w, float* to) const {
  constexpr std::int64_t block = pointwise_block;
  const std::int64_t outs = problem_.outs(), ins = problem_.ins();  // I and O of the weights
  parallel_for(outs / block, divide_up(elements_per_thread, ins * block),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin * block; i < end * block; i += block) {
                   for (std::int64_t k = 0; k < ins; k += block) {
                     const float* const read = w + k * outs + i * block;
                     float* const write = to + i * ins + k * block;
                     for (std::int64_t row = 0; row < block; ++row) {
                       for (std::int64_t column = 0; column < block; ++column) {
                         write[row * block + column] = read[column * block + row];
                       }
                     }
                   }
                 }
               });
}

// Sets the pixels of dx to zero that no pixel of y reads.
void PointwiseConvolution::clear_unread(std::byte* dx) const {
  const Shape &x = problem_.x.shape, &y = problem_.y.shape;
  const BlockStrides strides = block_strides(problem_.x);
  const auto pixel = strides.pixel * static_cast<std::int64_t>(size_of(problem_.x.type));  // bytes
  const std::int64_t line = x[3] * pixel, planes = x[1] / strides.pixel;  // of an image
  parallel_for(x[0] * planes * x[2], divide_up(elements_per_thread * 4, line),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t row = i % x[2];
                   const bool is_read =
                       row % problem_.stride_h == 0 && row / problem_.stride_h < y[2];
                   const std::int64_t read = is_read ? y[3] : 0;
                   std::byte* const at = dx + i * line;
                   for (std::int64_t q = 0; q < read; ++q) {
                     const std::int64_t next = q + 1 < read ? (q + 1) * problem_.stride_w : x[3];
                     const std::int64_t after = q * problem_.stride_w + 1;
                     std::fill_n(at + after * pixel, (next - after) * pixel, std::byte{0});
                   }
                   if (!is_read) {
                     std::fill_n(at, line, std::byte{0});
                   }
                 }
               });
}

}  // namespace cnn::layers::cpu
