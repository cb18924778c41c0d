#include <algorithm>
#include <optional>
#include <vector>

#include "layers/conv.h"
#include "layers/cpu/isa.h"
#include "layers/cpu/own_kernel.h"
#include "layers/cpu/rows.h"

// Convolutions of 3 x 3 windows by Winograd's algorithm (see simd/winograd.h), in f32 or between
// bf16 images: at best 2.25 times fewer products than directly. Weights are row-major.
namespace cnn::layers::cpu {
namespace {

constexpr std::int64_t tile_side = 2;  // of outputs

// One convolution, whatever its direction: x [N,I,H,W] -> y [N,O,P,Q].
struct Problem {
  TensorDesc x, y;
  std::int64_t pad_top = 0, pad_left = 0;

  std::int64_t high() const { return (y.shape[2] + tile_side - 1) / tile_side; }
  std::int64_t wide() const { return (y.shape[3] + tile_side - 1) / tile_side; }
  std::int64_t tiles() const { return y.shape[0] * high() * wide(); }
  // Of the products and of the additions that transform x and y.
  double flops() const {
    const auto in = static_cast<double>(x.shape[1]), out = static_cast<double>(y.shape[1]);
    return static_cast<double>(tiles()) * (2 * winograd_points * in * out + 32 * in + 24 * out);
  }
  WinogradTiles cover() const {
    return {.high = high(), .wide = wide(), .pad_top = pad_top, .pad_left = pad_left};
  }
};

WinogradImage image_of(const TensorDesc& desc) {
  const std::int64_t channels = desc.shape[1], pixels = desc.shape[2] * desc.shape[3];
  const bool nhwc = desc.layout == Layout::nhwc;
  return {.height = desc.shape[2],
          .width = desc.shape[3],
          .channels = channels,
          .image = pixels * channels,
          .block = nhwc ? winograd_block : pixels * winograd_block,
          .pixel = nhwc ? channels : winograd_block};
}

// How many times fewer products than directly it must need to be the faster, odd edges counted:
// measured on images of 7 x 7 (1.7 times fewer), where weights are read for few tiles.
constexpr double least_saving = 1.9, least_saving_of_gradient = 1.5;

// Whether the algorithm applies and pays: there must be channels enough to pay for the transforms
// of images, and tiles enough to pay for those of weights.
bool serves(const ConvAttributes& a, const TensorDesc& x, const TensorDesc& y, double saving) {
  constexpr std::int64_t least_channels = 32, least_tiles = 192;
  const Window& w = a.window;
  const bool small_step = w.kernel_h == 3 && w.kernel_w == 3 && w.stride_h == 1 && w.stride_w == 1;
  const auto fits = [&](const TensorDesc& image) {
    const bool fast = image.type == DataType::f32 || !multiplies_bf16_fast();
    return is_vectorised(image.type) && fast && image.shape[1] % winograd_block == 0 &&
           image.shape[1] >= least_channels;
  };
  if (!small_step || a.depthwise || std::max(w.pad_top, w.pad_left) >= w.kernel_h || !fits(x) ||
      !fits(y) || x.type != y.type) {
    return false;
  }
  const Problem p{.x = x, .y = y};
  const auto direct = static_cast<double>(winograd_taps * y.shape[0] * y.shape[2] * y.shape[3]);
  return p.tiles() >= least_tiles &&
         direct / static_cast<double>(winograd_points * p.tiles()) >= saving;
}

// body(first, count) for blocks of at most `most` items, about as large, that cover [first, last).
template <class Body>
void in_blocks(std::int64_t first, std::int64_t last, std::int64_t most, const Body& body) {
  const std::int64_t blocks = (last - first + most - 1) / most;
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::int64_t begin = first + (last - first) * i / blocks;
    body(begin, first + (last - first) * (i + 1) / blocks - begin);
  }
}

// Transformed at a time: few enough for the second-level cache, enough to use weights often; in
// whole groups of rows of the products.
constexpr std::int64_t tiles_together = 48;

// What follows a convolution; the operands of bias and residual come after the weights.
struct Epilogue {
  bool bias = false, residual = false, relu = false;
};

// y = x * w, forward or, with the weights rotated, backward.
class Convolution {
 public:
  Convolution(const Problem& problem, const Epilogue& after, bool rotated,
              const WinogradLoops& loops)
      : problem_(problem), after_(after), rotated_(rotated), loops_(loops), team_(team_size()) {}

  const Problem& problem() const { return problem_; }
  std::size_t workspace() const {
    Carver carver;
    carve(carver);
    return carver.bytes();
  }

  void operator()(const Operands& o) const {
    Carver carver(o.workspace);
    const Scratch scratch = carve(carver);
    const std::int64_t in = problem_.x.shape[1], out = problem_.y.shape[1];
    const WinogradWeights weights{.w = o.in[1].as<float>().data(),
                                  .in = rotated_ ? out : in,
                                  .out = rotated_ ? in : out,
                                  .rotated = rotated_};
    parallel_for(in / winograd_block, 1, [&](std::int64_t first, std::int64_t last) {
      loops_.weights(weights, first * winograd_block, last * winograd_block, scratch.u);
    });
    const WinogradConv conv{.x_image = image_of(problem_.x),
                            .y_image = image_of(problem_.y),
                            .tiles = problem_.cover(),
                            .x = o.in[0].data,
                            .u = scratch.u,
                            .bias = after_.bias ? o.in[2].as<float>().data() : nullptr,
                            .residual = after_.residual ? o.in.back().data : nullptr,
                            .y = o.out[0].data,
                            .relu = after_.relu};
    parallel_for(team_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        convolve_share(conv, i, scratch.tiles + i * scratch.tiles_each);
      }
    });
  }

 private:
  struct Scratch {
    float* u;
    float* tiles;
    std::int64_t tiles_each;
  };

  // What one thread does: its part of the tiles and, where there are more threads than tiles for
  // them, of the output channels.
  void convolve_share(WinogradConv conv, std::int64_t thread, float* scratch) const {
    const std::int64_t tiles = problem_.tiles(), out = problem_.y.shape[1];
    const std::int64_t panels = (out + loops_.panel - 1) / loops_.panel;
    const std::int64_t across = std::clamp<std::int64_t>(tiles / (2 * tiles_together), 1, team_);
    const std::int64_t deep = std::clamp<std::int64_t>(team_ / across, 1, panels);
    if (thread >= across * deep) {
      return;
    }
    const std::int64_t i = thread / deep, k = thread % deep;
    conv.first_out = panels * k / deep * loops_.panel;
    conv.last_out = std::min(out, panels * (k + 1) / deep * loops_.panel);
    const auto convolve = (problem_.x.type == DataType::f32 ? loops_.f32 : loops_.bf16).convolve;
    in_blocks(
        tiles * i / across, tiles * (i + 1) / across, tiles_together,
        [&](std::int64_t first, std::int64_t count) { convolve(conv, first, count, scratch); });
  }

  Scratch carve(Carver& carver) const {
    const std::int64_t in = problem_.x.shape[1], out = problem_.y.shape[1];
    const std::int64_t each = loops_.conv_scratch(in, tiles_together);
    float* const u = carver.take<float>(winograd_points * in * out);
    return {.u = u, .tiles = carver.take<float>(each * team_), .tiles_each = each};
  }

  Problem problem_;
  Epilogue after_;
  bool rotated_;
  const WinogradLoops& loops_;
  std::int64_t team_;
};

// dw = x * dy. The channels are cut into slabs whose sums stay in a second-level cache, the tiles
// into parts, as many as the shape alone says: results do not depend on the number of threads.
class WeightsGradient {
 public:
  WeightsGradient(const Problem& problem, bool bias, const WinogradLoops& loops)
      : problem_(problem), bias_(bias), loops_(loops), team_(team_size()) {
    const std::int64_t in = problem.x.shape[1], out = problem.y.shape[1];
    slab_in_ = even_slab(in, 96);
    slab_out_ = even_slab(out, 64);
    slabs_in_ = (in + slab_in_ - 1) / slab_in_;
    slabs_out_ = (out + slab_out_ - 1) / slab_out_;
    constexpr std::int64_t items = 64, least_tiles = 1024;
    const std::int64_t wanted = (items + slabs() - 1) / slabs();
    parts_ = std::clamp<std::int64_t>(problem.tiles() / least_tiles, 1, wanted);
  }

  const Problem& problem() const { return problem_; }
  std::size_t workspace() const {
    Carver carver;
    carve(carver);
    return carver.bytes();
  }

  void operator()(const Operands& o) const {
    Carver carver(o.workspace);
    const Scratch scratch = carve(carver);
    parallel_for(team_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t items = parts_ * slabs();
        for (std::int64_t item = items * i / team_; item < items * (i + 1) / team_; ++item) {
          run_item(o, item, scratch, scratch.own + i * scratch.own_each);
        }
      }
    });
    const std::int64_t in = problem_.x.shape[1], out = problem_.y.shape[1];
    const WinogradTaps taps{.taps = scratch.taps,
                            .parts = parts_,
                            .in = in,
                            .out = out,
                            .slab_in = slab_in_,
                            .slab_out = slab_out_};
    parallel_for(out / winograd_block, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        loops_.join(taps, i * winograd_block, o.out[0].as<float>().data());
      }
    });
    if (bias_) {
      join_bias(scratch.bias, o.out[1].as<float>().data());
    }
  }

 private:
  struct Scratch {
    float* taps;   // see WinogradTaps
    double* bias;  // [parts][O]
    float* own;    // of each thread
    std::int64_t own_each;
  };

  // The most that slabs of whole blocks can be even.
  static std::int64_t even_slab(std::int64_t channels, std::int64_t most) {
    const std::int64_t slabs = (channels + most - 1) / most;
    const std::int64_t blocks = channels / winograd_block;
    return (blocks + slabs - 1) / slabs * winograd_block;
  }

  std::int64_t slabs() const { return slabs_in_ * slabs_out_; }
  std::int64_t sums() const { return winograd_points * slab_in_ * slab_out_; }

  Scratch carve(Carver& carver) const {
    const std::int64_t in = problem_.x.shape[1], out = problem_.y.shape[1];
    Scratch scratch{};
    scratch.taps = carver.take<float>(parts_ * winograd_taps * in * out);
    scratch.bias = carver.take<double>(bias_ ? parts_ * out : 0);
    scratch.own_each = sums() + loops_.gradient_scratch(slab_in_, slab_out_, tiles_together);
    scratch.own = carver.take<float>(scratch.own_each * team_);
    return scratch;
  }

  // Parts change slowest: the slabs of a part read the same pixels.
  void run_item(const Operands& o, std::int64_t item, const Scratch& scratch, float* own) const {
    const std::int64_t in = problem_.x.shape[1], out = problem_.y.shape[1];
    const std::int64_t part = item / slabs(), slab = item % slabs();
    WinogradGradient of{.x_image = image_of(problem_.x),
                        .y_image = image_of(problem_.y),
                        .tiles = problem_.cover(),
                        .x = o.in[0].data,
                        .dy = o.in[1].data};
    of.first_in = slab / slabs_out_ * slab_in_;
    of.first_out = slab % slabs_out_ * slab_out_;
    of.ins = std::min(slab_in_, in - of.first_in);
    of.outs = std::min(slab_out_, out - of.first_out);
    double* const bias =
        bias_ && of.first_in == 0 ? scratch.bias + part * out + of.first_out : nullptr;
    if (bias != nullptr) {
      std::fill_n(bias, of.outs, 0.0);
    }
    std::fill_n(own, sums(), 0.0F);
    const auto gradient = (problem_.x.type == DataType::f32 ? loops_.f32 : loops_.bf16).gradient;
    const std::int64_t tiles = problem_.tiles();
    in_blocks(tiles * part / parts_, tiles * (part + 1) / parts_, tiles_together,
              [&](std::int64_t first, std::int64_t count) {
                gradient(of, first, count, own + sums(), own, bias);
              });
    float* const taps = scratch.taps + winograd_taps * (part * in * out + of.first_in * out +
                                                        of.first_out * of.ins);
    loops_.taps(own, of.ins, of.outs, taps);
  }

  void join_bias(const double* parts, float* bias) const {
    const std::int64_t out = problem_.y.shape[1];
    for (std::int64_t k = 0; k < out; ++k) {
      double sum = 0;
      for (std::int64_t part = 0; part < parts_; ++part) {
        sum += parts[part * out + k];
      }
      bias[k] = static_cast<float>(sum);
    }
  }

  Problem problem_;
  bool bias_;
  const WinogradLoops& loops_;
  std::int64_t team_;
  std::int64_t slab_in_ = 0, slab_out_ = 0, slabs_in_ = 0, slabs_out_ = 0, parts_ = 1;
};

Convolution work_of(const Conv2d& op, const Signature& s, const WinogradLoops& loops) {
  const ConvAttributes& a = op.attributes;
  return {{.x = s.in[0], .y = s.out[0], .pad_top = a.window.pad_top, .pad_left = a.window.pad_left},
          {.bias = a.bias, .residual = a.residual, .relu = a.relu},
          false,
          loops};
}

Convolution work_of(const Conv2dBackwardData& op, const Signature& s, const WinogradLoops& loops) {
  const Window& w = op.attributes.window;
  return {{.x = s.in[0],
           .y = s.out[0],
           .pad_top = w.kernel_h - 1 - w.pad_top,
           .pad_left = w.kernel_w - 1 - w.pad_left},
          {},
          true,
          loops};
}

WeightsGradient work_of(const Conv2dBackwardWeights& op, const Signature& s,
                        const WinogradLoops& loops) {
  const Window& w = op.attributes.window;
  return {{.x = s.in[0], .y = s.in[1], .pad_top = w.pad_top, .pad_left = w.pad_left},
          op.attributes.bias,
          loops};
}

// x and y of an op, and its weights or their gradient.
struct Roles {
  TensorDesc &x, &y, &w;
};
Roles roles(const Conv2d& /*op*/, Signature& s) { return {s.in[0], s.out[0], s.in[1]}; }
Roles roles(const Conv2dBackwardData& /*op*/, Signature& s) { return {s.out[0], s.in[0], s.in[1]}; }
Roles roles(const Conv2dBackwardWeights& /*op*/, Signature& s) {
  return {s.in[0], s.in[1], s.out[0]};
}

template <class O>
void add_row(KernelTable& table, const WinogradLoops& loops, double saving) {
  table.add<O>(
      [&loops, saving](const O& op, Signature asked) -> std::optional<KernelSpec> {
        for (auto* side : {&asked.in, &asked.out}) {
          for (TensorDesc& desc : *side) {  // as oneDNN's rows do
            desc.type = desc.type == DataType::f16 ? DataType::f32 : desc.type;
          }
        }
        const Roles operands = roles(op, asked);
        if (!serves(op.attributes, operands.x, operands.y, saving)) {
          return std::nullopt;
        }
        const KernelSpec images = in_layout(asked, channels_together(asked));
        Signature s{images.in, images.out};
        TensorDesc& w = roles(op, s).w;
        w = plain(w);
        const auto work = work_of(op, s, loops);
        KernelSpec spec{.workspace = work.workspace(), .in = s.in, .out = s.out};
        spec.flops = work.problem().flops();
        return spec;
      },
      [&loops](const O& op, const Signature& s) { return own_kernel(work_of(op, s, loops)); });
}

}  // namespace

void add_winograd_rows(KernelTable& table, const Loops& loops) {
  add_row<Conv2d>(table, loops.winograd, least_saving);
  add_row<Conv2dBackwardData>(table, loops.winograd, least_saving);
  add_row<Conv2dBackwardWeights>(table, loops.winograd, least_saving_of_gradient);
}

}  // namespace cnn::layers::cpu
