#include "layers/cpu/tile_positions.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <iterator>
#include <utility>
#include <vector>

#include "tests/layers/cpu/bf16_gradients.h"

namespace cnn::tests {
namespace {

using layers::cpu::TilePositions;

TilePositions positions_of(const GradientCase& gradient_case) {
  return {gradient_case.x, gradient_case.y(), gradient_case.window};
}

// Returns the pixels that a tap joins, as numbers of dy's and x's, by the numbering of positions.
std::vector<std::pair<std::int32_t, std::int32_t>> joined(const TilePositions& positions,
                                                          std::int64_t tap) {
  const std::int64_t shift = positions.shift_of(tap);
  std::vector<std::int32_t> dy(static_cast<std::size_t>(positions.count())),
      x(static_cast<std::size_t>(positions.count() + positions.halo()));
  positions.list_dy(0, positions.count(), dy.data());
  positions.list_x(positions.phase_of(tap), 0, positions.count() + positions.halo(), x.data());
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const std::int32_t other = x[i + static_cast<std::size_t>(shift)];
    if (dy[i] >= 0 && other >= 0) {
      pairs.emplace_back(dy[i], other);
    }
  }
  return pairs;
}

class TilePositionsOfCase : public testing::TestWithParam<GradientCase> {};

TEST_P(TilePositionsOfCase, JoinThePixelsOfEachTap) {
  const GradientCase& gradient_case = GetParam();
  const TilePositions positions = positions_of(gradient_case);
  const auto number = [](const Shape& shape, const Pixel& at) {
    return static_cast<std::int32_t>((at.image * shape[2] + at.row) * shape[3] + at.column);
  };
  for (std::int64_t tap = 0; tap < gradient_case.taps(); ++tap) {
    std::vector<std::pair<std::int32_t, std::int32_t>> expected;
    each_pixel(gradient_case, tap / gradient_case.window.kernel_w,
               tap % gradient_case.window.kernel_w, [&](const Pixel& dy, const Pixel& x) {
                 expected.emplace_back(number(gradient_case.y(), dy), number(gradient_case.x, x));
               });
    EXPECT_EQ(joined(positions, tap), expected) << tap;
  }
}

TEST_P(TilePositionsOfCase, AreTheSameFromAnyFirstOneOn) {
  const TilePositions all = positions_of(GetParam());
  std::vector<std::int32_t> whole(static_cast<std::size_t>(all.count())), piece(7);
  all.list_dy(0, all.count(), whole.data());
  for (std::int64_t first = 0; first + 7 <= all.count(); first += 5) {
    all.list_dy(first, 7, piece.data());
    EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + first)) << first;
  }
}

TEST_P(TilePositionsOfCase, HoldEachPixelOfXOnceAtMost) {
  const TilePositions positions = positions_of(GetParam());
  std::vector<std::int32_t> all;
  for (std::int64_t phase = 0; phase < positions.phases(); ++phase) {
    std::vector<std::int32_t> listed(static_cast<std::size_t>(positions.count() + 100));
    positions.list_x(phase, 0, std::ssize(listed), listed.data());
    std::ranges::copy_if(listed, std::back_inserter(all), [](auto pixel) { return pixel >= 0; });
  }
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
}

INSTANTIATE_TEST_SUITE_P(Shapes, TilePositionsOfCase, testing::ValuesIn(gradient_cases()),
                         [](const auto& info) { return info.param.name; });

// The padding of a row is the next one's, so that a row of 56 pixels takes 57 positions.
TEST(TilePositions, ShareThePaddingOfNeighbours) {
  const GradientCase gradient_case{"three", {2, 16, 56, 56}, 16, square(3, 1, 1)};
  EXPECT_EQ(positions_of(gradient_case).count(), (57 + 55) * 57 + 56);
}

TEST(TilePositions, LeaveNoGapsWithoutAWindow) {
  const GradientCase gradient_case{"one", {3, 16, 7, 7}, 16, square(1, 1, 0)};
  EXPECT_EQ(positions_of(gradient_case).count(), 3 * 49);
}

}  // namespace
}  // namespace cnn::tests
