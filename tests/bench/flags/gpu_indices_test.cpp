#include "bench/flags/gpu_indices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(GpuIndices, KeepTheOrderOfTheList) {
  EXPECT_THAT(parse_gpu_indices("3"), ElementsAre(3));
  EXPECT_THAT(parse_gpu_indices("1,0,12,2"), ElementsAre(1, 0, 12, 2));
}

TEST(GpuIndices, AreNoneOfAnEmptyText) { EXPECT_THAT(parse_gpu_indices(""), IsEmpty()); }

TEST(GpuIndices, AreWholeNumbersFromZeroOn) {
  for (const std::string list : {",", "0,", ",0", "0,,1", "-1", "+1", "0x1", "1.0", "0, 1", " 0",
                                 "2147483648", "99999999999999999999", "all"}) {
    EXPECT_THAT(tests::error_of([&] { parse_gpu_indices(list); }),
                testing::AllOf(HasSubstr("--gpu_indices=" + list + ": "),
                               HasSubstr("is no number of a GPU; give numbers from 0 on")))
        << list;
  }
}

TEST(GpuIndices, NameNoDeviceTwice) {
  EXPECT_THAT(tests::error_of([] { parse_gpu_indices("2,1,02"); }),
              HasSubstr("--gpu_indices=2,1,02 names GPU 2 twice"));
}

TEST(GpuIndices, NameTheDeviceOfEachPlace) {
  EXPECT_EQ(device_at("", 0), 0);
  EXPECT_EQ(device_at("", 3), 3);
  EXPECT_EQ(device_at("2,0", 0), 2);
  EXPECT_EQ(device_at("2,0", 1), 0);
}

TEST(GpuIndices, AreEnoughForTheRanksOfTheHost) {
  EXPECT_THAT(tests::error_of([] { device_at("2,0", 2); }),
              HasSubstr("names 2 GPUs, but this host has a rank number 3"));
  EXPECT_THAT(tests::error_of([] { device_at("5", 1); }),
              HasSubstr("names 1 GPU, but this host has a rank number 2"));
}

}  // namespace
}  // namespace cnn::bench
