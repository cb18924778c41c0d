#include "data/images/resize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "data/images/simd/pixel_loops.h"

namespace cnn::data {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

constexpr ResizeMethod all_methods[] = {ResizeMethod::nearest, ResizeMethod::bilinear,
                                        ResizeMethod::bicubic, ResizeMethod::area};

// Returns one row of grey pixels.
Pixels row_of(const std::vector<int>& values) {
  Pixels pixels;
  pixels.reserve({.height = 1, .width = static_cast<int>(values.size())});
  for (std::size_t i = 0; i < 3 * values.size(); ++i) {
    pixels.rgb[i] = static_cast<std::uint8_t>(values[i / 3]);
  }
  return pixels;
}

std::vector<float> resized_row(ResizeMethod method, const std::vector<int>& values, int out,
                               bool mirrored = false) {
  const int in = static_cast<int>(values.size());
  std::vector<float> result(3 * static_cast<std::size_t>(out)), first;
  Resizer().resize(row_of(values),
                   {.rows = resize_axis(method, {1, 1, 0, 1}),
                    .columns = resize_axis(method, {in, out, 0, out}),
                    .mirrored = mirrored},
                   result.data());
  for (std::size_t i = 0; i < result.size(); i += 3) {
    first.push_back(result[i]);
  }
  return first;
}

// tf.compat.v1.image.resize_images(align_corners=False) gave the expected numbers.
TEST(Resize, GivesTheValuesOfTensorFlow) {
  const std::vector<int> values{10, 20, 40, 80, 160};
  EXPECT_THAT(resized_row(ResizeMethod::nearest, values, 3), ElementsAre(10, 20, 80));
  EXPECT_THAT(resized_row(ResizeMethod::bilinear, values, 3),
              Pointwise(FloatNear(1e-3F), {10.0F, 33.3333F, 106.6667F}));
  EXPECT_THAT(resized_row(ResizeMethod::area, values, 2),
              Pointwise(FloatNear(1e-3F), {20.0F, 104.0F}));
  EXPECT_THAT(resized_row(ResizeMethod::bilinear, {0, 100}, 4),
              Pointwise(FloatNear(1e-3F), {0.0F, 50.0F, 100.0F, 100.0F}));
  EXPECT_THAT(resized_row(ResizeMethod::nearest, {0, 100}, 4), ElementsAre(0, 0, 100, 100));
}

TEST(Resize, MirrorsBeforeItResizes) {
  for (const ResizeMethod method : all_methods) {
    EXPECT_EQ(resized_row(method, {10, 20, 40, 80, 160}, 3, true),
              resized_row(method, {160, 80, 40, 20, 10}, 3));
  }
}

TEST(Resize, KeepsAConstantImageInAllMethodsAndSizes) {
  for (const ResizeMethod method : all_methods) {
    for (const auto& [in_h, in_w, out_h, out_w] :
         {std::array{10, 10, 4, 4}, std::array{4, 4, 10, 10}, std::array{1, 100, 100, 1},
          std::array{100, 1, 1, 100}, std::array{1, 100, 1, 100}}) {
      Pixels pixels;
      pixels.reserve({.height = in_h, .width = in_w});
      std::ranges::fill(pixels.rgb, 128);
      std::vector<float> out(static_cast<std::size_t>(3 * out_h * out_w));
      Resizer().resize(pixels,
                       {.rows = resize_axis(method, {in_h, out_h, 0, out_h}),
                        .columns = resize_axis(method, {in_w, out_w, 0, out_w})},
                       out.data());
      EXPECT_THAT(out, testing::Each(FloatNear(128, 1e-3F))) << static_cast<int>(method);
    }
  }
}

TEST(Resize, MatchesTheWholeResizeOnAPart) {
  for (const ResizeMethod method : all_methods) {
    const ResizeAxis whole = resize_axis(method, {50, 30, 0, 30});
    const ResizeAxis part = resize_axis(method, {50, 30, 7, 10});
    for (std::size_t t = 0; t < whole.taps; ++t) {
      for (std::size_t i = 0; i < 10; ++i) {
        EXPECT_EQ(part.source[t * 10 + i], whole.source[t * 30 + 7 + i]);
        EXPECT_EQ(part.weight[t * 10 + i], whole.weight[t * 30 + 7 + i]);
      }
    }
  }
}

TEST(Resize, ScalesAndShiftsEachChannel) {
  std::vector<float> out(3);
  Resizer().resize(row_of({100}),
                   {.rows = resize_axis(ResizeMethod::bilinear, {1, 1, 0, 1}),
                    .columns = resize_axis(ResizeMethod::bilinear, {1, 1, 0, 1}),
                    .transform = {.scale = 0.5F, .shift = {1, 2, 3}}},
                   out.data());
  EXPECT_THAT(out, ElementsAre(51, 52, 53));
}

// Returns the tables of loops that this processor can run, except the plain one.
std::vector<const simd::PixelLoops*> fast_loops() {
  std::vector<const simd::PixelLoops*> tables;
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) {
    tables.push_back(&simd::avx2_pixel_loops());
  }
  if (__builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512bw") != 0) {
    tables.push_back(&simd::avx512_pixel_loops());
    if (__builtin_cpu_supports("avx512vbmi") != 0) {
      tables.push_back(&simd::avx512_vbmi_pixel_loops());
    }
  }
  return tables;
}

TEST(PixelLoops, GatherTheSameWithAllInstructionSets) {
  std::mt19937 random(1);  // NOLINT: the same numbers every time
  for (const std::size_t taps : {1U, 2U, 4U}) {
    constexpr std::size_t n = 101;
    std::vector<float> row(200), weight(n * taps), plain(n), fast(n);
    std::vector<std::int32_t> source(n * taps);
    for (float& value : row) {
      value = static_cast<float>(random() % 256);
    }
    for (std::size_t i = 0; i < weight.size(); ++i) {
      weight[i] = static_cast<float>(random() % 1000) / 1000;
      source[i] = static_cast<std::int32_t>(random() % row.size());
    }
    simd::plain_pixel_loops().gather(row.data(), {source.data(), weight.data(), taps}, plain.data(),
                                     n);
    for (const simd::PixelLoops* loops : fast_loops()) {
      loops->gather(row.data(), {source.data(), weight.data(), taps}, fast.data(), n);
      EXPECT_THAT(fast, Pointwise(FloatNear(1e-3F), plain));
    }
  }
}

// The numbers of pixels leave every remainder of the vectors' four pixels.
TEST(PixelLoops, ResizeByTwoTapsTheSameWithAllInstructionSets) {
  std::mt19937 random(1);  // NOLINT: the same numbers every time
  std::vector<std::uint8_t> bytes(200 + simd::slack);
  for (std::uint8_t& value : bytes) {
    value = static_cast<std::uint8_t>(random());
  }
  for (const std::size_t pixels : {1U, 2U, 3U, 32U, 33U, 34U, 35U}) {
    std::vector<float> weight, plain(3 * pixels + simd::slack), fast(plain.size());
    std::vector<std::int32_t> source;
    for (std::size_t i = 0; i < 2 * pixels; ++i) {
      source.push_back(static_cast<std::int32_t>(random() % 198));
      weight.push_back(static_cast<float>(random() % 1000) / 1000);
    }
    simd::plain_pixel_loops().bilinear(bytes.data(), source.data(), weight.data(), plain.data(),
                                       pixels);
    plain.resize(3 * pixels);
    for (const simd::PixelLoops* loops : fast_loops()) {
      fast.assign(3 * pixels + simd::slack + 1, -1);
      loops->bilinear(bytes.data(), source.data(), weight.data(), fast.data(), pixels);
      EXPECT_EQ(fast.back(), -1) << "a write past the slack, " << pixels << " pixels";
      fast.resize(3 * pixels);
      EXPECT_THAT(fast, Pointwise(FloatNear(1e-3F), plain)) << pixels << " pixels";
    }
  }
}

TEST(PixelLoops, ReadWindowsTheSameWithAllInstructionSets) {
  constexpr std::size_t groups = 3, taps = 2 * simd::WindowTaps::group * groups;
  std::mt19937 random(1);  // NOLINT: the same numbers every time
  std::vector<std::uint8_t> bytes(100 + simd::WindowTaps::bytes), index(taps);
  std::vector<float> weight(taps), plain(taps / 2), fast(taps / 2);
  for (std::uint8_t& value : bytes) {
    value = static_cast<std::uint8_t>(random());
  }
  for (std::size_t i = 0; i < taps; ++i) {
    index[i] = static_cast<std::uint8_t>(random() % simd::WindowTaps::bytes);
    weight[i] = static_cast<float>(random() % 1000) / 1000;
  }
  const std::int32_t windows[groups] = {7, 100, 0};
  const simd::WindowTaps window_taps{windows, index.data(), weight.data(), groups};
  simd::plain_pixel_loops().windows(bytes.data(), window_taps, plain.data());
  for (const simd::PixelLoops* loops : fast_loops()) {
    loops->windows(bytes.data(), window_taps, fast.data());
    EXPECT_THAT(fast, Pointwise(FloatNear(1e-3F), plain));
  }
}

// Small scales keep the sources of 16 values within a window, large ones do not.
TEST(Resize, HasTheValuesOfItsFormulaAtEveryScale) {
  for (const auto& [in, out] : {std::pair{40, 64}, std::pair{64, 40}, std::pair{64, 64},
                                std::pair{300, 40}, std::pair{7, 5}, std::pair{1, 9}}) {
    std::vector<int> values;
    for (int i = 0; i < in; ++i) {
      values.push_back(i * 37 % 256);
    }
    const std::vector<float> result = resized_row(ResizeMethod::bilinear, values, out);
    for (int i = 0; i < out; ++i) {
      const float position =
          static_cast<float>(i) * (static_cast<float>(in) / static_cast<float>(out));
      const int left = static_cast<int>(position), right = std::min(left + 1, in - 1);
      const float share = position - static_cast<float>(left);
      const float expected =
          static_cast<float>(values[static_cast<std::size_t>(left)]) * (1 - share) +
          static_cast<float>(values[static_cast<std::size_t>(right)]) * share;
      EXPECT_NEAR(result[static_cast<std::size_t>(i)], expected, 1e-3) << in << " to " << out;
    }
  }
}

// A decoder of whole blocks stores pixels around the region.
TEST(Resize, ReadsOnlyTheRegionOfRowsWithAMargin) {
  Pixels tight, wide;
  tight.reserve({.height = 2, .width = 3});
  wide.reserve({.height = 2, .width = 3}, 2, 8);
  std::ranges::fill(wide.rgb, 255);
  for (int y = 0; y < 2; ++y) {
    for (int x = 0; x < 9; ++x) {
      tight.row(y)[x] = wide.row(y)[x] = static_cast<std::uint8_t>(20 * y + x);
    }
  }
  for (const ResizeMethod method : all_methods) {
    std::vector<float> expected(3 * 5 * 4), result(expected.size());
    const Resizer::Request request{.rows = resize_axis(method, {2, 4, 0, 4}),
                                   .columns = resize_axis(method, {3, 5, 0, 5})};
    Resizer().resize(tight, request, expected.data());
    Resizer().resize(wide, request, result.data());
    EXPECT_EQ(result, expected) << static_cast<int>(method);
  }
}

}  // namespace
}  // namespace cnn::data
