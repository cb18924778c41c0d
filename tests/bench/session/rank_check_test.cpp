#include "bench/session/rank_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_ops.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Hashes = std::vector<TensorHash>;

// Fixture with two tensors, one of which is computed twice.
class RankDifference : public testing::Test {
 protected:
  RankDifference() {
    const Value x = graph_.input("x", tests::floats(2));
    const Value w = graph_.parameter("w", tests::floats(2), {});
    emit(tests::Scale(2), {emit(tests::Combine(), {x, w})});
  }

  // Returns the message if the ranks have these hashes in the second of three computations.
  std::string text(const std::vector<std::uint64_t>& of_second) const {
    std::vector<Hashes> all;
    std::vector<std::string> hosts;
    for (const std::uint64_t hash : of_second) {
      all.push_back(
          {{.tensor = 0, .hash = 1}, {.tensor = 1, .hash = hash}, {.tensor = 0, .hash = hash}});
      hosts.push_back("host" + std::to_string(hosts.size()));
    }
    return difference_text(7, WrittenTensors(graph_), all, hosts);
  }

  Graph graph_;
};

TEST_F(RankDifference, NamesTheOneRankThatComputesDifferently) {
  const std::string name = WrittenTensors(graph_).all()[1].name;
  EXPECT_THAT(text({5, 5, 0xAB}),
              AllOf(HasSubstr("rank 2 (host host2) computes differently from the other 2 in global "
                              "step 7, first in " +
                              name),
                    HasSubstr("00000000000000ab instead of 0000000000000005"),
                    HasSubstr("2 of the 3 tensors that the step wrote differ"),
                    HasSubstr("have its machine checked")));
}

TEST_F(RankDifference, NamesSeveralRanksWhereTheOthersAreMore) {
  EXPECT_THAT(
      text({4, 5, 5, 6, 5}),
      HasSubstr("ranks 0 (host host0), 3 (host host3) compute differently from the other 3"));
}

TEST_F(RankDifference, CannotSayWhoIsWrongWithoutAMajority) {
  for (const auto& hashes :
       std::vector<std::vector<std::uint64_t>>{{5, 6}, {5, 5, 6, 6}, {1, 2, 3}}) {
    EXPECT_THAT(text(hashes),
                AllOf(HasSubstr("ranks compute differently in global step 7"),
                      HasSubstr("nobody can say which is wrong"), Not(HasSubstr("instead of"))));
  }
}

TEST(RanksDiffer, HasAnExitCodeOfItsOwn) { EXPECT_EQ(RanksDiffer("x").exit_code(), 4); }

}  // namespace
}  // namespace cnn::bench
