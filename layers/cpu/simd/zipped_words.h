#pragma once

#include <cstdint>

namespace cnn::layers::cpu {

// A permutation of words: of two vectors of 16, those with the same number become neighbours.
struct alignas(64) ZippedWords {
  std::uint16_t order[32]{0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                          8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
};
inline constexpr ZippedWords zipped_words;

}  // namespace cnn::layers::cpu
