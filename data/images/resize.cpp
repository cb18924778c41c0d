#include "data/images/resize.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "data/images/simd/pixel_loops.h"
#include "runtime/divide_up.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

struct Tap {
  int source = 0;
  float weight = 0;
};
using Taps = std::vector<Tap>;

// Keys' cubic with TensorFlow's parameter and table of 1024 steps.
constexpr float cubic = -0.75F;
constexpr float cubic_steps = 1024;

float near_cubic(float x) { return ((cubic + 2) * x - (cubic + 3)) * x * x + 1; }
float far_cubic(float x) { return ((cubic * x - 5 * cubic) * x + 8 * cubic) * x - 4 * cubic; }

void bicubic_taps(float position, Taps& taps) {
  const int base = static_cast<int>(position);
  const float step = std::nearbyint((position - static_cast<float>(base)) * cubic_steps);
  const float x = step / cubic_steps;
  taps = {{base - 1, far_cubic(x + 1)},
          {base, near_cubic(x)},
          {base + 1, near_cubic(1 - x)},
          {base + 2, far_cubic(2 - x)}};
}

// Computes the share of each input pixel in the interval [begin, end).
void area_taps(float begin, float end, float scale, Taps& taps) {
  taps.clear();
  const int last = static_cast<int>(std::ceil(end));
  for (int i = static_cast<int>(begin); i < last; ++i) {
    const auto at = static_cast<float>(i);
    const float covered = std::min(at + 1, end) - std::max(at, begin);
    taps.push_back({i, covered / scale});
  }
}

void taps_of(ResizeMethod method, float scale, int output, Taps& taps) {
  const float position = static_cast<float>(output) * scale;
  const int base = static_cast<int>(position);
  switch (method) {
    case ResizeMethod::nearest:
      taps = {{base, 1}};
      break;
    case ResizeMethod::bilinear: {
      const float share = position - static_cast<float>(base);
      taps = {{base, 1 - share}, {base + 1, share}};
      break;
    }
    case ResizeMethod::bicubic:
      bicubic_taps(position, taps);
      break;
    case ResizeMethod::area:
      area_taps(position, static_cast<float>(output + 1) * scale, scale, taps);
      break;
  }
}

std::size_t max_taps(ResizeMethod method, float scale) {
  switch (method) {
    case ResizeMethod::nearest:
      return 1;
    case ResizeMethod::bilinear:
      return 2;
    case ResizeMethod::bicubic:
      return 4;
    case ResizeMethod::area:
      return static_cast<std::size_t>(std::ceil(scale)) + 2;
  }
  throw Error("not a resize method");
}

const simd::PixelLoops& loops() {
  static const bool has_avx2 =
      __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  static const bool has_avx512 =
      has_avx2 && __builtin_cpu_supports("avx512f") != 0 &&
      __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512cd") != 0;
  static const bool has_vbmi = has_avx512 && __builtin_cpu_supports("avx512vbmi") != 0;
  return has_vbmi     ? simd::avx512_vbmi_pixel_loops()
         : has_avx512 ? simd::avx512_pixel_loops()
         : has_avx2   ? simd::avx2_pixel_loops()
                      : simd::plain_pixel_loops();
}

}  // namespace

ResizeAxis resize_axis(ResizeMethod method, const AxisRequest& request) {
  const float scale = static_cast<float>(request.in) / static_cast<float>(request.out);
  ResizeAxis axis{.taps = max_taps(method, scale),
                  .outputs = static_cast<std::size_t>(request.count),
                  .source = {},
                  .weight = {}};
  axis.source.resize(axis.taps * axis.outputs);
  axis.weight.resize(axis.taps * axis.outputs);
  Taps taps;
  for (std::size_t i = 0; i < axis.outputs; ++i) {
    taps_of(method, scale, request.first + static_cast<int>(i), taps);
    taps.resize(axis.taps, {taps.back().source, 0});
    for (std::size_t t = 0; t < axis.taps; ++t) {
      axis.source[t * axis.outputs + i] = std::clamp(taps[t].source, 0, request.in - 1);
      axis.weight[t * axis.outputs + i] = taps[t].weight;
    }
  }
  return axis;
}

SourceRange source_range(const ResizeAxis& axis) {
  const auto [least, most] = std::ranges::minmax(axis.source);
  return {.begin = least, .end = most + 1};
}

// Resizes each source row along x once; consecutive output rows share it.
const float* Resizer::resized_row(const Pixels& from, int row) {
  const std::size_t slot = static_cast<std::size_t>(row) % cached_.size();
  float* const resized = cache_.data() + slot * stride_;
  if (cached_[slot] != row) {
    const std::uint8_t* const pixels = from.row(row);
    if (!windows_.empty()) {
      loops().windows(pixels,
                      {windows_.data(), indices_.data(), window_weights_.data(), windows_.size()},
                      resized);
    } else if (taps_ == 2) {
      loops().bilinear(pixels, sources_.data(), weights_.data(), resized, values_ / 3);
    } else {
      loops().widen(pixels, widened_.data(), from.row_bytes());
      loops().gather(widened_.data(), {sources_.data(), weights_.data(), taps_}, resized, values_);
    }
    cached_[slot] = row;
  }
  return resized;
}

void Resizer::prepare(const Pixels& from, const Request& request) {
  const ResizeAxis& columns = request.columns;
  values_ = 3 * columns.outputs;
  taps_ = columns.taps;
  // The loop for two taps processes pixels, the general loop single values.
  const std::size_t copies = taps_ == 2 ? 1 : 3;
  sources_.resize(copies * columns.source.size());
  weights_.resize(sources_.size());
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const int column = columns.source[i / copies];
    const int source = request.mirrored ? from.region.width - 1 - column : column;
    sources_[i] = 3 * source + static_cast<int>(i % copies);
    weights_[i] = columns.weight[i / copies];
  }
  shift_.resize(values_);
  for (std::size_t i = 0; i < values_; ++i) {
    shift_[i] = request.transform.shift[i % 3];
  }
  widened_.resize(from.row_bytes());
  cached_.assign(request.rows.taps + 1, -1);
  windows_.clear();
  if (taps_ == 2 && loops().has_fast_windows) {
    find_windows();
  }
  stride_ = round_up(values_, simd::WindowTaps::group) + simd::slack;
  cache_.resize(cached_.size() * stride_);
}

// Leaves no windows if the sources of some group lie further apart than one has bytes.
void Resizer::find_windows() {
  constexpr std::size_t group = simd::WindowTaps::group;
  const std::size_t groups = divide_up(values_, group), pixels = values_ / 3;
  windows_.resize(groups);
  indices_.resize(2 * group * groups);
  window_weights_.resize(indices_.size());
  std::array<std::int32_t, 2 * group> at{};
  for (std::size_t g = 0; g < groups; ++g) {
    std::size_t pixel = group * g / 3, channel = group * g % 3;
    float* const weight = window_weights_.data() + 2 * group * g;
    for (std::size_t j = 0; j < group; ++j) {
      at[j] = sources_[pixel] + static_cast<std::int32_t>(channel);
      at[group + j] = sources_[pixels + pixel] + static_cast<std::int32_t>(channel);
      weight[j] = weights_[pixel];
      weight[group + j] = weights_[pixels + pixel];
      if (++channel == 3 && pixel + 1 < pixels) {  // what follows the last pixel repeats its end
        ++pixel;
        channel = 0;
      }
      channel = std::min<std::size_t>(channel, 2);
    }
    const auto [first, last] = std::ranges::minmax(at);
    if (last - first >= static_cast<std::int32_t>(simd::WindowTaps::bytes)) {
      windows_.clear();
      return;
    }
    windows_[g] = first;
    for (std::size_t j = 0; j < at.size(); ++j) {
      indices_[2 * group * g + j] = static_cast<std::uint8_t>(at[j] - first);
    }
  }
}

void Resizer::resize(const Pixels& from, const Request& request, float* out) {
  const ResizeAxis& rows = request.rows;
  const SourceRange wide = source_range(request.columns), high = source_range(rows);
  check(wide.end <= from.region.width && high.end <= from.region.height,
        "a resize reads beyond its region");
  prepare(from, request);
  std::vector<const float*> sources(rows.taps);
  std::vector<float> weights(rows.taps);
  for (std::size_t y = 0; y < rows.outputs; ++y) {
    for (std::size_t t = 0; t < rows.taps; ++t) {
      sources[t] = resized_row(from, rows.source[t * rows.outputs + y]);
      weights[t] = rows.weight[t * rows.outputs + y];
    }
    loops().blend({sources.data(), weights.data(), rows.taps},
                  {request.transform.scale, shift_.data()}, out + y * values_, values_);
  }
}

}  // namespace cnn::data
