#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tensor_hash.h"

namespace cnn::compare {

// Returns the lines of one step of a hash file, with pairs of a tensor's number and its hash.
inline std::string step_lines(int number,
                              const std::vector<std::pair<std::size_t, std::uint64_t>>& hashes) {
  std::string text = fmt::format("step\t{}\n", number);
  std::uint64_t combined = 0;
  for (const auto& [tensor, hash] : hashes) {
    text += fmt::format("{}\t{:016x}\n", tensor, hash);
    combined = combine_hash(combine_hash(combined, tensor), hash);
  }
  return text + fmt::format("end\t{}\t{}\t{:016x}\n", number, hashes.size(), combined);
}

}  // namespace cnn::compare
