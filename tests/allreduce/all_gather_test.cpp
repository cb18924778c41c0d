#include "allreduce/all_gather.h"

#include <cstddef>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/error_of.h"

namespace cnn::allreduce {
namespace {

struct PlainValue {
  std::int32_t number = 0;
  double share = 0;
  bool operator==(const PlainValue&) const = default;
};

// A world of three processes whose messages are fixed in advance.
class ScriptedWorld final : public World {
 public:
  ScriptedWorld(int rank, std::vector<std::string> messages)
      : rank_(rank), messages_(std::move(messages)) {}
  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(messages_.size()); }
  std::vector<std::string> gather(std::string_view mine) override {
    messages_[static_cast<std::size_t>(rank_)] = mine;
    return messages_;
  }
  std::unique_ptr<Transport> connect(std::size_t /*channels*/) override { return nullptr; }
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
}  // namespace cnn::allreduce
