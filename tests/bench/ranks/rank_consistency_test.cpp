#include "bench/ranks/rank_consistency.h"

#include <array>
#include <gtest/gtest.h>

namespace cnn::bench {
namespace {

TEST(Alike, NamesTheFirstLineInWhichARankDiffers) {
  using Texts = std::array<std::string, 3>;
  EXPECT_EQ(first_difference(Texts{"a\nb\n", "a\nb\n", "a\nb\n"}), "");
  EXPECT_EQ(first_difference(Texts{"a\nb\nc\n", "a\nb\nc\n", "a\nx\ny\n"}),
            "rank 0 has b, rank 2 has x: start all ranks with the same program and the same flags, "
            "on processors of one kind");
  EXPECT_EQ(first_difference(Texts{"a\nb\n", "a\n", ""}).find("rank 0 has b, rank 1 has nothing"),
            0U);
}

TEST(Alike, LeavesOutFlagsThatMayDifferFromHostToHost) {
  const RunIdentity identity{.version = "1.2.3",
                             .config = {{"model", "lenet"},
                                        {"train_dir", "/tmp/x"},
                                        {"init_learning_rate", 0.5},
                                        {"result_json", nullptr}}};
  EXPECT_EQ(
      description(identity),
      "cnn_benchmarks 1.2.3 of unknown commit\n--model=\"lenet\"\n--init_learning_rate=0.5\n");
}

}  // namespace
}  // namespace cnn::bench
