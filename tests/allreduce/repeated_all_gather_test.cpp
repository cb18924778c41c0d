#include "allreduce/repeated_all_gather.h"

#include <bit>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "tests/allreduce/ranks.h"

namespace cnn::allreduce {
namespace {

constexpr SharedMemoryOptions few_segments{.segment_bytes = std::size_t{1} << 23U};

// Simulates the sets of parts of all ranks; no rank may send a part before it has it.
TEST(GatherRounds, GiveAllPartsToAllInAsManyRoundsAsTheRanksHaveBits) {
  std::vector<int> counts{256, 257, 1000, 1024};
  for (int ranks = 1; ranks <= 33; ++ranks) {
    counts.push_back(ranks);
  }
  for (const int ranks : counts) {
    const auto n = static_cast<std::size_t>(ranks);
    std::vector<std::vector<bool>> has(n, std::vector<bool>(n));
    std::vector<std::vector<GatherRound>> rounds;
    for (int rank = 0; rank < ranks; ++rank) {
      rounds.push_back(gather_rounds(rank, ranks));
      has[static_cast<std::size_t>(rank)][static_cast<std::size_t>(rank)] = true;
      ASSERT_EQ(rounds.back().size(), std::bit_width(n - 1)) << ranks << " ranks";
    }
    for (std::size_t round = 0; round < rounds.front().size(); ++round) {
      const auto before = has;
      for (std::size_t rank = 0; rank < n; ++rank) {
        const GatherRound& mine = rounds[rank][round];
        const auto from = static_cast<std::size_t>(mine.from);
        const GatherRound& theirs = rounds[from][round];
        ASSERT_EQ(theirs.to, static_cast<int>(rank));
        ASSERT_EQ(theirs.sends, mine.receives);
        ASSERT_EQ(theirs.count, mine.count);
        for (int i = 0; i < mine.count; ++i) {
          const std::size_t part = static_cast<std::size_t>(mine.receives + i) % n;
          ASSERT_TRUE(before[from][part]);
          ASSERT_FALSE(before[rank][part]) << "the part is sent twice";
          has[rank][part] = true;
        }
      }
    }
    EXPECT_EQ(has, std::vector(n, std::vector<bool>(n, true))) << ranks << " ranks";
  }
}

TEST(RepeatedAllGather, HasThePartOfEachRank) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    const auto errors = tests::as_threads(ranks, few_segments, [&](Transport& transport) {
      RepeatedAllGather all_gather(transport, sizeof(int));
      for (int time = 0; time < 50; ++time) {
        const int mine = 100 * time + transport.rank();
        std::memcpy(all_gather.mine().data(), &mine, sizeof(mine));
        all_gather.run();
        for (int rank = 0; rank < ranks; ++rank) {
          int theirs = 0;
          std::memcpy(&theirs, all_gather.of(rank).data(), sizeof(theirs));
          check(theirs == 100 * time + rank,
                "rank " + std::to_string(rank) + " gave something else");
        }
      }
    });
    EXPECT_EQ(errors, std::vector<std::string>(errors.size())) << ranks << " ranks";
  }
}

TEST(Broadcast, GivesAllRanksTheValuesOfRankZero) {
  for (const int ranks : {1, 2, 3, 6, 8, 9}) {
    const auto errors = tests::as_threads(ranks, few_segments, [&](Transport& transport) {
      Broadcast broadcast(transport);
      // Counts floats; a part holds 262,144.
      for (const std::size_t count : {1U, 262'144U, 600'001U}) {
        std::vector<float> values = tests::contribution(transport.rank(), count, false);
        broadcast.run(std::as_writable_bytes(std::span(values)));
        check(values == tests::contribution(0, count, false), "other values than rank 0's");
      }
    });
    EXPECT_EQ(errors, std::vector<std::string>(errors.size())) << ranks << " ranks";
  }
}

}  // namespace
}  // namespace cnn::allreduce
