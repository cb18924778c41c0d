#include "allreduce/mpi/in_parts.h"

#include <cstddef>
#include <gtest/gtest.h>
#include <utility>
#include <vector>

namespace cnn::allreduce {
namespace {

TEST(InParts, CoversAllValuesWithoutALongerPart) {
  for (const std::size_t count : {0U, 1U, 4U, 5U, 12U, 14U}) {
    std::vector<float> values(count);
    std::size_t next = 0;
    in_parts(values, 4, [&](std::span<float> part) {
      EXPECT_EQ(part.data(), values.data() + next);
      EXPECT_FALSE(part.empty());
      EXPECT_LE(part.size(), 4U);
      next += part.size();
    });
    EXPECT_EQ(next, count);
  }
}

}  // namespace
}  // namespace cnn::allreduce
