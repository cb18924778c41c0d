#include "runtime/required.h"

#include <concepts>
#include <cstdint>
#include <gtest/gtest.h>
#include <type_traits>

namespace cnn {
namespace {

struct Rows {
  Required<std::int64_t> pitch;
  int count = 0;
};

// It is a template so that code that does not compile yields false.
template <class T>
constexpr bool compiles_without_the_member = requires {
  T{.count = 3};
};

TEST(Required, CannotBeLeftOutOfAnInitializer) {
  EXPECT_FALSE(compiles_without_the_member<Rows>);
  EXPECT_FALSE(std::is_default_constructible_v<Rows>);
}

TEST(Required, ReadsAsItsValue) {
  const Rows rows{.pitch = 7, .count = 3};
  EXPECT_EQ(rows.pitch * rows.count, 21);
  const std::int64_t pitch = rows.pitch;
  EXPECT_EQ(pitch, 7);
}

}  // namespace
}  // namespace cnn
