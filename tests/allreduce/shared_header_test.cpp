#include "allreduce/shared_header.h"

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <set>
#include <utility>
#include <vector>

namespace cnn::allreduce {
namespace {

// The header takes whole huge pages, with 640 bytes per rank and 8 bytes per pair.
TEST(SharedHeader, TakesAtMostTenMebibytesForAThousandRanks) {
  constexpr std::size_t mib = std::size_t{1} << 20U;
  for (const auto& [ranks, most] :
       std::vector<std::pair<std::size_t, std::size_t>>{{2, 2 * mib},
                                                        {16, 2 * mib},
                                                        {128, 2 * mib},
                                                        {256, 2 * mib},
                                                        {400, 2 * mib},
                                                        {1024, 10 * mib}}) {
    EXPECT_LE(SharedHeader::header_bytes({.ranks = ranks, .channels = 64, .segment_bytes = 0}),
              most)
        << ranks << " ranks";
  }
}

TEST(SharedHeader, HasADistinctBitForEachMessage) {
  for (const auto& [ranks, channels] :
       std::vector<std::pair<std::size_t, std::size_t>>{{3, 5}, {16, 64}, {17, 64}, {20, 130}}) {
    const SharedParameters parameters{.ranks = ranks, .channels = channels, .segment_bytes = 1};
    std::vector<std::byte> memory(SharedHeader::total_bytes(parameters) + 64);
    const auto misalignment = reinterpret_cast<std::uintptr_t>(memory.data()) % 64;
    SharedHeader header(memory.data() + (64 - misalignment) % 64);
    header.construct(parameters);
    std::set<std::pair<const void*, std::uint64_t>> bits;
    std::set<const void*> counters;
    const void* const end = header.segment(0);
    for (std::size_t channel = 0; channel < channels; ++channel) {
      for (std::size_t from = 0; from < ranks; ++from) {
        for (std::size_t to = 0; to < ranks; ++to) {
          auto& word = header.pending(channel, from, to);
          EXPECT_EQ(word.fetch_or(SharedHeader::bit(channel)) & SharedHeader::bit(channel), 0U);
          bits.emplace(&word, SharedHeader::bit(channel));
          EXPECT_LT(&word, end);
        }
        EXPECT_EQ(header.arrivals(channel, from).exchange(1), 0U);
        counters.insert(&header.arrivals(channel, from));
      }
    }
    EXPECT_EQ(bits.size(), channels * ranks * ranks);
    EXPECT_EQ(counters.size(), channels * ranks);
  }
}

}  // namespace
}  // namespace cnn::allreduce
