#include "bench/ranks/failure.h"

#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "allreduce/transport.h"
#include "bench/ranks/interruption.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

// Rank 2 of a run whose first rank says the same, or does not, and notes how this one aborts it.
class FailingWorld final : public allreduce::World {
 public:
  explicit FailingWorld(bool rank_0_says_it) : rank_0_says_it_(rank_0_says_it) {}

  int rank() const override { return 2; }
  int ranks() const override { return 4; }
  std::vector<std::string> gather(std::string_view mine) override { return {std::string(mine)}; }
  std::unique_ptr<allreduce::Transport> connect(std::size_t /*channels*/) override {
    return nullptr;
  }
  void all_reduce(std::span<float> /*values*/) override {}
  void polled_all_reduce(std::span<float> /*values*/) override {}
  void check_peers() override {}
  void abort(int culprit, std::string_view why) noexcept override {
    culprit_ = culprit;
    why_ = why;
  }
  bool rank_0_reports(std::string_view /*why*/) noexcept override { return rank_0_says_it_; }
  void finish() override {}

  std::optional<int> culprit() const { return culprit_; }
  const std::string& why() const { return why_; }

 private:
  bool rank_0_says_it_;
  std::optional<int> culprit_;
  std::string why_;
};

// Returns what rank 2 says of its failure.
std::string said_of(const std::exception& error, allreduce::World* world) {
  Console console;
  if (world != nullptr) {
    console.become_rank(world->rank());
  }
  const Interruption interruption(console);
  testing::internal::CaptureStderr();
  report_failure(error, world, interruption, console);
  return testing::internal::GetCapturedStderr();
}

TEST(TellFailure, SaysWhyAProcessAloneFailed) {
  EXPECT_EQ(said_of(Error("no room"), nullptr), "no room\n");
}

TEST(TellFailure, TellsTheOthersAndLeavesTheWordsToRank0WhereItSaysTheSame) {
  FailingWorld world(true);
  EXPECT_EQ(said_of(Error("no room"), &world), "");
  EXPECT_EQ(world.culprit(), 2);
  EXPECT_EQ(world.why(), "no room");
}

TEST(TellFailure, SpeaksForItselfWhereRank0SaysSomethingElse) {
  FailingWorld world(false);
  EXPECT_EQ(said_of(Error("no room"), &world), "rank 2: no room\n");
  EXPECT_EQ(world.culprit(), 2);
}

TEST(TellFailure, BlamesTheRankThatIsLost) {
  FailingWorld world(true);
  EXPECT_EQ(said_of(allreduce::PeerLost(3, "rank 3 is lost"), &world), "rank 2: rank 3 is lost\n");
  EXPECT_EQ(world.culprit(), 3);
}

TEST(TellWrongFlags, SaysThemOnceWhereTheProcessIsAlone) {
  Console console;
  testing::internal::CaptureStderr();
  report_wrong_flags(Error("--model=x: no such model"), console);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "--model=x: no such model\n");
}

}  // namespace
}  // namespace cnn::bench
