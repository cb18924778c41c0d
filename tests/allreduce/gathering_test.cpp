#include "allreduce/gathering.h"

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "tests/allreduce/ranks.h"

namespace cnn::allreduce {
namespace {

constexpr PeerMemoryOptions few_rooms{.room = std::size_t{1} << 23U};

TEST(Gathering, HasWhatEachRankGave) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    const auto errors = tests::as_threads(ranks, few_rooms, [&](Transport& transport) {
      Gathering gathering(transport, sizeof(int));
      for (int time = 0; time < 50; ++time) {
        const int mine = 100 * time + transport.rank();
        std::memcpy(gathering.mine().data(), &mine, sizeof(mine));
        gathering.run();
        for (int rank = 0; rank < ranks; ++rank) {
          int theirs = 0;
          std::memcpy(&theirs, gathering.of(rank).data(), sizeof(theirs));
          check(theirs == 100 * time + rank,
                "rank " + std::to_string(rank) + " gave something else");
        }
      }
    });
    EXPECT_EQ(errors, std::vector<std::string>(errors.size())) << ranks << " ranks";
  }
}

TEST(Broadcast, GivesAllTheValuesOfTheFirst) {
  for (const int ranks : {1, 2, 3, 6, 8, 9}) {
    const auto errors = tests::as_threads(ranks, few_rooms, [&](Transport& transport) {
      Broadcast broadcast(transport);
      for (const std::size_t count : {1U, 262'144U, 600'001U}) {  // floats; a part has 262,144
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
