#include "bench/ranks/all_gather.h"

#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

struct PlainValue {
  std::int32_t number = 0;
  double share = 0;
  bool operator==(const PlainValue&) const = default;
};

struct NestedValue {
  std::string name;
  std::vector<std::vector<PlainValue>> lists;
  std::optional<std::string> note;
  PlainValue plain;

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

// Three processes whose messages are known beforehand.
class ScriptedWorld final : public allreduce::World {
 public:
  ScriptedWorld(int rank, std::vector<std::string> messages)
      : rank_(rank), messages_(std::move(messages)) {}
  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(messages_.size()); }
  std::vector<std::string> gather(std::string_view mine) override {
    messages_[static_cast<std::size_t>(rank_)] = mine;
    return messages_;
  }
  std::unique_ptr<allreduce::Transport> connect(std::size_t /*channels*/) override {
    return nullptr;
  }
  void all_reduce(std::span<float> /*values*/) override {}
  void check_peers() override {}
  void abort(int /*culprit*/, std::string_view /*why*/) noexcept override {}
  void polled_all_reduce(std::span<float> /*values*/) override {}
  bool rank_0_reports(std::string_view /*why*/) noexcept override { return false; }
  void finish() override {}

 private:
  int rank_;
  std::vector<std::string> messages_;
};

TEST(AllGather, ReturnsTheValueOfEachProcessByRank) {
  const PlainValue first{1, 0.5}, last{3, 2.5};
  ScriptedWorld world(1, {to_bytes(first), "", to_bytes(last)});
  const PlainValue mine{2, 1.5};
  EXPECT_THAT(all_gather(world, mine), testing::ElementsAre(first, mine, last));
}

TEST(AllGather, ReturnsTheValueOfTheFirstProcessToAll) {
  ScriptedWorld second(1, {to_bytes(std::string("plan")), "", ""});
  EXPECT_EQ(from_first(second, std::string("another")), "plan");
  ScriptedWorld first(0, {"", "", ""});
  EXPECT_EQ(from_first(first, std::string("own")), "own");
}

TEST(AllGather, RefusesAValueOfAnotherType) {
  ScriptedWorld world(1, {to_bytes(std::int64_t{1}), ""});
  EXPECT_THAT(tests::error_of([&] { all_gather(world, std::int32_t{1}); }),
              testing::HasSubstr("start all ranks with the same program"));
}

}  // namespace
}  // namespace cnn::bench
