#include "runtime/device.h"

#include <array>
#include <gtest/gtest.h>

namespace cnn {
namespace {

TEST(Lane, HasAName) {
  EXPECT_EQ(name_of(Lane::compute), "compute");
  EXPECT_EQ(name_of(Lane::side), "side");
  EXPECT_EQ(name_of(Lane::copy_out), "copy_out");
  EXPECT_EQ(name_of(Lane::copy_in), "copy_in");
  EXPECT_EQ(name_of(Lane::communicate), "communicate");
}

TEST(Buffer, ReleasesItsBytesOnceWhereverTheyWent) {
  int released = 0;
  std::array<std::byte, 8> bytes{};
  {
    Buffer first(bytes.data(), bytes.size(), [&](std::byte* data) {
      EXPECT_EQ(data, bytes.data());
      ++released;
    });
    Buffer second(std::move(first));
    Buffer third;
    third = std::move(second);
    EXPECT_EQ(third.data(), bytes.data());
    EXPECT_EQ(third.bytes(), 8U);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(Buffer, ReleasesWhatItHeldWhenItIsAssigned) {
  int released = 0;
  std::array<std::byte, 8> bytes{};
  Buffer buffer(bytes.data(), bytes.size(), [&](std::byte* /*data*/) { ++released; });
  buffer = Buffer();
  EXPECT_EQ(released, 1);
  EXPECT_EQ(buffer.data(), nullptr);
}

}  // namespace
}  // namespace cnn
