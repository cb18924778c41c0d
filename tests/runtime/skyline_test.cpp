#include "runtime/skyline.h"

#include <cstddef>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

#include "tests/runtime/intervals.h"

namespace cnn {
namespace {

using tests::expect_disjoint;
using tests::interval;

constexpr std::size_t ample = 6'000'000;  // comparisons

// Cuts a rectangle of steps and bytes at random places into at most so many intervals, which then
// have a placement without a gap.
std::vector<Interval> pieces_of(std::uint32_t steps, std::size_t units, std::size_t count,
                                std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Interval> pieces{interval(0, steps - 1, units)};
  for (std::size_t tries = 0; pieces.size() < count && tries < 100 * count; ++tries) {
    Interval& piece = pieces[random() % pieces.size()];
    const std::uint32_t length = piece.last - piece.first + 1;
    if (random() % 2 == 0 && length > 1) {
      const std::uint32_t middle = piece.first + random() % (length - 1);
      const Interval rest = interval(middle + 1, piece.last, piece.bytes);
      piece.last = middle;
      pieces.push_back(rest);
    } else if (piece.bytes > 1) {
      const std::size_t part = 1 + random() % (piece.bytes - 1);
      const Interval rest = interval(piece.first, piece.last, piece.bytes - part);
      piece.bytes = part;
      pieces.push_back(rest);
    }
  }
  for (Interval& piece : pieces) {
    piece.bytes *= 64;
  }
  return pieces;
}

TEST(PlaceBySkyline, KeepsApartWhatMeetsInOneStepOnly) {
  const std::vector<Interval> intervals{interval(0, 5, 64), interval(5, 9, 64)};
  const Placement placement = place_by_skyline(intervals, 0, ample / 1000);
  EXPECT_EQ(placement.height, 128U);
  expect_disjoint(intervals, placement);
}

TEST(PlaceBySkyline, TakesStepsThatDoNotFitIn16Bits) {
  for (const std::uint32_t last : {32'767U, 32'768U, 100'000U}) {
    const std::vector<Interval> intervals{interval(0, last, 64), interval(last, last, 64),
                                          interval(0, last - 1, 64)};
    const Placement placement = place_by_skyline(intervals, 128, ample / 1000);
    EXPECT_EQ(placement.height, 128U);
    expect_disjoint(intervals, placement);
  }
}

TEST(PlaceBySkyline, LeavesNextToNoGapsInWhatHasNone) {
  for (const std::uint32_t seed : {1U, 2U, 3U, 4U}) {
    const std::vector<Interval> intervals = pieces_of(300, 50'000, 200, seed);
    const std::size_t bound = lower_bound(intervals);
    ASSERT_EQ(bound, std::size_t{50'000} * 64);
    const Placement placement = place_by_skyline(intervals, bound, ample);
    expect_disjoint(intervals, placement);
    EXPECT_LE(static_cast<double>(placement.height), 1.08 * static_cast<double>(bound)) << seed;
  }
}

TEST(PlaceBySkyline, ImprovesOnItsFirstRound) {
  const std::vector<Interval> intervals = pieces_of(300, 50'000, 200, 5);
  const Placement one = place_by_skyline(intervals, 0, 0);
  expect_disjoint(intervals, one);
  EXPECT_LT(place_by_skyline(intervals, lower_bound(intervals), ample).height, one.height);
}

TEST(PlaceBySkyline, EndsAtTheGoal) {
  const std::vector<Interval> intervals = pieces_of(300, 50'000, 200, 6);
  const Placement one = place_by_skyline(intervals, 0, 0);
  EXPECT_EQ(place_by_skyline(intervals, one.height, ample).offsets, one.offsets);
}

TEST(PlaceBySkyline, GivesTheSameAnswerEveryTime) {
  const std::vector<Interval> intervals = pieces_of(100, 5'000, 100, 7);
  EXPECT_EQ(place_by_skyline(intervals, 0, ample / 10).offsets,
            place_by_skyline(intervals, 0, ample / 10).offsets);
}

TEST(PlaceBySkyline, TakesNoIntervalsAndOneThatIsAboveTheGoal) {
  EXPECT_EQ(place_by_skyline({}, 0, ample).height, 0U);
  EXPECT_EQ(place_by_skyline({interval(3, 4, 64)}, 0, 1000).height, 64U);
}

}  // namespace
}  // namespace cnn
