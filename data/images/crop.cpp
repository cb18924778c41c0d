#include "data/images/crop.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/error.h"

namespace cnn::data {
namespace {

constexpr float min_aspect = 0.75F, max_aspect = 1.33F;
constexpr float min_area = 0.05F, max_area = 1.0F;
constexpr float min_covered = 0.1F;
constexpr int attempts = 100;
constexpr float coverage_factor = 1.145F;
constexpr int official_shorter_side = 256;

// Longest side after a resize, which is never in memory as a whole.
constexpr float longest_side = 0x1p30F;

int as_side(float value) { return static_cast<int>(std::clamp(value, 1.0F, longest_side)); }

int rounded(float value) { return static_cast<int>(std::lrint(value)); }

// Returns a box in pixels. Records may contain anything: edges outside of the image are clipped,
// and NaN edges count as 0.
Region in_pixels(const Box& box, const ImageSize& image) {
  const auto share = [](float edge) { return edge >= 0 ? std::min(edge, 1.0F) : 0.0F; };
  const auto at = [&](float edge, int side) {
    return static_cast<int>(share(edge) * static_cast<float>(side));
  };
  const int top = at(box.ymin, image.height), left = at(box.xmin, image.width);
  return {.top = top,
          .left = left,
          .height = at(box.ymax, image.height) - top,
          .width = at(box.xmax, image.width) - left};
}

float area_of(const Region& region) {
  return static_cast<float>(std::max(0, region.height)) *
         static_cast<float>(std::max(0, region.width));
}

float common_area(const Region& a, const Region& b) {
  const int top = std::max(a.top, b.top), left = std::max(a.left, b.left);
  return area_of({.top = top,
                  .left = left,
                  .height = std::min(a.top + a.height, b.top + b.height) - top,
                  .width = std::min(a.left + a.width, b.left + b.width) - left});
}

bool covers_one(const Region& crop, std::span<const Region> boxes) {
  return std::ranges::any_of(boxes, [&](const Region& box) {
    const float area = area_of(box);
    return area >= 1 && common_area(crop, box) >= min_covered * area;
  });
}

// Draws a rectangle of that aspect ratio with a random height and a permitted area; false: there is
// none.
bool draw_size(const ImageSize& image, float aspect, RandomStream& random, Region& crop) {
  const float whole = static_cast<float>(image.height) * static_cast<float>(image.width);
  const float least = min_area * whole, most = max_area * whole;
  int height = rounded(std::sqrt(least / aspect));
  int highest = rounded(std::sqrt(most / aspect));
  if (rounded(static_cast<float>(highest) * aspect) > image.width) {
    highest = static_cast<int>((static_cast<float>(image.width) + 0.5F - 1e-7F) / aspect);
    if (rounded(static_cast<float>(highest) * aspect) > image.width) {
      --highest;
    }
  }
  highest = std::min(highest, image.height);
  height = std::min(height, highest);
  if (height < highest) {
    height += static_cast<int>(random.below(highest - height + 1));
  }
  const auto width_of = [aspect](int h) { return rounded(static_cast<float>(h) * aspect); };
  const auto area = [&](int h) { return static_cast<float>(h) * static_cast<float>(width_of(h)); };
  // Rounding alone must not reject a crop.
  if (area(height) < least) {
    ++height;
  }
  if (area(height) > most) {
    --height;
  }
  crop.height = height;
  crop.width = width_of(height);
  return area(height) >= least && area(height) <= most && crop.width <= image.width &&
         height <= image.height && crop.width > 0 && height > 0;
}

CentralCrop middle_of(const ImageSize& resized, const ImageSize& out) {
  return {.resized = resized,
          .top = (resized.height - out.height) / 2,
          .left = (resized.width - out.width) / 2};
}

}  // namespace

Region sample_crop(const ImageSize& image, std::span<const Box> boxes, RandomStream& random) {
  std::vector<Region> objects;
  for (const Box& box : boxes) {
    objects.push_back(in_pixels(box, image));
  }
  if (objects.empty()) {
    objects.push_back({.height = image.height, .width = image.width});
  }
  for (int attempt = 0; attempt < attempts; ++attempt) {
    Region crop;
    const float aspect = random.uniform(min_aspect, max_aspect);
    if (!draw_size(image, aspect, random, crop)) {
      continue;
    }
    if (crop.height < image.height) {
      crop.top = static_cast<int>(random.below(image.height - crop.height));
    }
    if (crop.width < image.width) {
      crop.left = static_cast<int>(random.below(image.width - crop.width));
    }
    if (covers_one(crop, objects)) {
      return crop;
    }
  }
  return {.height = image.height, .width = image.width};
}

CentralCrop central_crop(const ImageSize& image, const ImageSize& out) {
  const auto height = static_cast<float>(image.height), width = static_cast<float>(image.width);
  const float ratio =
      std::max(static_cast<float>(out.height) / height, static_cast<float>(out.width) / width);
  return middle_of({.height = std::max(as_side(height * ratio * coverage_factor), out.height),
                    .width = std::max(as_side(width * ratio * coverage_factor), out.width)},
                   out);
}

CentralCrop official_central_crop(const ImageSize& image, const ImageSize& out) {
  check(out.height <= official_shorter_side && out.width <= official_shorter_side,
        "--input_preprocessor=official_models_imagenet makes images of at most 256 pixels a side; "
        "use --input_preprocessor=default for larger ones");
  const auto height = static_cast<float>(image.height), width = static_cast<float>(image.width);
  const float ratio = static_cast<float>(official_shorter_side) / std::min(height, width);
  return middle_of({.height = std::max(as_side(height * ratio), out.height),
                    .width = std::max(as_side(width * ratio), out.width)},
                   out);
}

}  // namespace cnn::data
