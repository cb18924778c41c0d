#include "allreduce/board.h"

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <set>
#include <utility>
#include <vector>

namespace cnn::allreduce {
namespace {

// In whole huge pages: 640 bytes of each rank, and 8 bytes of each pair.
TEST(Board, TakesLittleMemoryOfManyRanks) {
  constexpr std::size_t mib = std::size_t{1} << 20U;
  for (const auto& [ranks, most] :
       std::vector<std::pair<std::size_t, std::size_t>>{{2, 2 * mib},
                                                        {16, 2 * mib},
                                                        {128, 2 * mib},
                                                        {256, 2 * mib},
                                                        {400, 2 * mib},
                                                        {1024, 10 * mib}}) {
    EXPECT_LE(Board::front({.ranks = ranks, .channels = 64, .room = 0}), most) << ranks << " ranks";
  }
}

TEST(Board, HasABitOfItsOwnForEachMessage) {
  for (const auto& [ranks, channels] :
       std::vector<std::pair<std::size_t, std::size_t>>{{3, 5}, {16, 64}, {17, 64}, {20, 130}}) {
    const Dimensions of{.ranks = ranks, .channels = channels, .room = 1};
    std::vector<std::byte> memory(Board::bytes(of) + 64);
    const auto past = reinterpret_cast<std::uintptr_t>(memory.data()) % 64;
    Board board(memory.data() + (64 - past) % 64);
    board.build(of);
    std::set<std::pair<const void*, std::uint64_t>> bits;
    std::set<const void*> counters;
    const void* const end = board.room(0);
    for (std::size_t channel = 0; channel < channels; ++channel) {
      for (std::size_t from = 0; from < ranks; ++from) {
        for (std::size_t to = 0; to < ranks; ++to) {
          auto& word = board.under_way(channel, from, to);
          EXPECT_EQ(word.fetch_or(Board::bit(channel)) & Board::bit(channel), 0U);
          bits.emplace(&word, Board::bit(channel));
          EXPECT_LT(&word, end);
        }
        EXPECT_EQ(board.arrivals(channel, from).exchange(1), 0U);
        counters.insert(&board.arrivals(channel, from));
      }
    }
    EXPECT_EQ(bits.size(), channels * ranks * ranks);
    EXPECT_EQ(counters.size(), channels * ranks);
  }
}

}  // namespace
}  // namespace cnn::allreduce
