#include "allreduce/serialization.h"

#include <cstddef>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/error_of.h"

namespace cnn::allreduce {
namespace {

struct PlainNumbers {
  std::int32_t number = 0;
  double share = 0;
  bool operator==(const PlainNumbers&) const = default;
};

struct NestedValue {
  std::string name;
  std::vector<std::vector<PlainNumbers>> lists;
  std::optional<std::string> note;
  PlainNumbers plain;

  static auto fields(auto& self) { return std::tie(self.name, self.lists, self.note, self.plain); }
  bool operator==(const NestedValue&) const = default;
};

TEST(Serialization, GivesBackEveryBitOfAValue) {
  NestedValue value{.name = std::string("a\0b\n", 4),
                    .lists = {{{1, 0.1}, {-1, 1e300}}, {}},
                    .note = "of a rank",
                    .plain = {7, -0.0}};
  EXPECT_EQ(from_bytes<NestedValue>(to_bytes(value)), value);
  value.note.reset();
  EXPECT_EQ(from_bytes<NestedValue>(to_bytes(value)), value);
  EXPECT_EQ(from_bytes<std::string>(to_bytes(std::string())), "");
}

TEST(Serialization, RefusesBytesOfAnotherLength) {
  const std::string bytes = to_bytes(NestedValue{.name = "n", .lists = {{{1, 2}}}});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(tests::error_of([&] { from_bytes<NestedValue>(bytes.substr(0, size)); }),
                testing::HasSubstr("wrong length"))
        << size;
  }
  EXPECT_THAT(tests::error_of([&] { from_bytes<NestedValue>(bytes + "x"); }),
              testing::HasSubstr("wrong length"));
}

TEST(Serialization, RefusesAListThatIsLongerThanItsBytes) {
  const std::string bytes = to_bytes(std::size_t{1} << 60U);
  EXPECT_THAT(tests::error_of([&] { from_bytes<std::vector<char>>(bytes); }),
              testing::HasSubstr("wrong length"));
}

}  // namespace
}  // namespace cnn::allreduce
