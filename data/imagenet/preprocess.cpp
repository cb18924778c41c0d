#include "data/imagenet/preprocess.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "data/images/colour.h"
#include "data/images/crop.h"
#include "data/images/random_stream.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int resize_methods = 4;
// The means of ImageNet's training images, on the scale from 0 to 255.
constexpr std::array<float, 3> channel_means{123.68F, 116.78F, 103.94F};

std::int64_t nanoseconds(Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

ResizeMethod method_for(const ImageOptions& options, const Place& place) {
  const auto number = options.resize == ResizeChoice::round_robin
                          ? place.in_batch % resize_methods
                          : static_cast<std::int64_t>(options.resize);
  return static_cast<ResizeMethod>(number);
}

bool subtracts_means(const ImageOptions& options) {
  return options.ml_perf || options.preprocessor == Preprocessor::official_models;
}

// Returns the transform from values up to `white` to the network's input range.
PixelTransform normalisation(const ImageOptions& options, float white) {
  if (subtracts_means(options)) {
    return {.scale = 255 / white,
            .shift = {-channel_means[0], -channel_means[1], -channel_means[2]}};
  }
  return {.scale = 2 / white, .shift = {-1, -1, -1}};
}

// The region to decode, and its resize to the final image.
struct Geometry {
  Region region;
  ResizeAxis rows, columns;
  bool mirrored = false;
};

Geometry training_geometry(const ImageSize& size, const EncodedImage& image,
                           const ImageOptions& options, RandomStream& random) {
  const std::span<const Box> boxes = options.ml_perf ? std::span<const Box>() : image.boxes;
  const Region crop = sample_crop(size, boxes, random);
  const ResizeMethod method = method_for(options, image.place);
  const int side = options.side;
  return {.region = crop,
          .rows = resize_axis(method, {crop.height, side, 0, side}),
          .columns = resize_axis(method, {crop.width, side, 0, side}),
          .mirrored = random.bits() % 2 == 0};
}

// Extra pixels around the decoded region. At its edge, libjpeg interpolates colours without the
// pixels outside; TensorFlow decodes whole images in evaluation, and the margin yields the same
// values.
constexpr int margin = 2;

// Makes the sources of an axis relative to the first decoded pixel and returns the decoded range.
// pixels: of the image along that axis.
SourceRange rebase(ResizeAxis& axis, int pixels) {
  const SourceRange needed = source_range(axis);
  const SourceRange range{.begin = std::max(0, needed.begin - margin),
                          .end = std::min(pixels, needed.end + margin)};
  for (std::int32_t& source : axis.source) {
    source -= range.begin;
  }
  return range;
}

Geometry evaluation_geometry(const ImageSize& size, const EncodedImage& image,
                             const ImageOptions& options) {
  const ImageSize out{options.side, options.side};
  const CentralCrop crop = options.preprocessor == Preprocessor::official_models
                               ? official_central_crop(size, out)
                               : central_crop(size, out);
  const ResizeMethod method = method_for(options, image.place);
  Geometry geometry{
      .region = {},
      .rows = resize_axis(method, {size.height, crop.resized.height, crop.top, options.side}),
      .columns = resize_axis(method, {size.width, crop.resized.width, crop.left, options.side})};
  const SourceRange rows = rebase(geometry.rows, size.height);
  const SourceRange columns = rebase(geometry.columns, size.width);
  geometry.region = {.top = rows.begin,
                     .left = columns.begin,
                     .height = rows.end - rows.begin,
                     .width = columns.end - columns.begin};
  return geometry;
}

void cut(const Pixels& whole, const Region& region, Pixels& into) {
  into.reserve(region);
  for (int y = 0; y < region.height; ++y) {
    const std::uint8_t* const from = whole.row(region.top + y) + std::ptrdiff_t{3} * region.left;
    std::copy_n(from, into.row_bytes(), into.row(y));
  }
}

}  // namespace

PreprocessTimes preprocess(const EncodedImage& image, const ImageOptions& options, bool training,
                           PreprocessScratch& scratch, std::span<float> out) {
  const Clock::time_point start = Clock::now();
  RandomStream random(options.seed, image.place.position);
  const ImageSize size = scratch.decoder.open(image.file);
  Geometry geometry = training ? training_geometry(size, image, options, random)
                               : evaluation_geometry(size, image, options);
  if (options.decode_crop_only) {
    scratch.decoder.decode(geometry.region, scratch.pixels);
  } else {
    scratch.decoder.decode({.height = size.height, .width = size.width}, scratch.whole);
    cut(scratch.whole, geometry.region, scratch.pixels);
  }
  const Clock::time_point decoded = Clock::now();
  const bool distorts = training && options.distortions;
  scratch.resizer.resize(
      scratch.pixels,
      {.rows = std::move(geometry.rows),
       .columns = std::move(geometry.columns),
       .mirrored = geometry.mirrored,
       .transform = distorts ? PixelTransform{.scale = 1.0F / 255} : normalisation(options, 255)},
      out.data());
  if (distorts) {
    const PixelTransform last = normalisation(options, 1);
    distort_colours(out, options.colours_in_yiq ? ColourSpace::yiq : ColourSpace::hsv,
                    image.place.in_batch % 2 != 0, random);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = out[i] * last.scale + last.shift[i % 3];
    }
  }
  return {.decode_ns = nanoseconds(decoded - start),
          .resize_ns = nanoseconds(Clock::now() - decoded)};
}

}  // namespace cnn::data
