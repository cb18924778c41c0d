#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cnn::bench {

// One part of --all_reduce_spec: the algorithm for buckets of up to `most` elements.
struct AlgorithmSpec {
  std::string name;                  // "direct", "nccl/xring"
  int shards = 1;                    // #2
  std::vector<int> dims = {};        // @4x8x8
  int chunks = 0;                    // %8; 0: not given
  std::optional<std::int64_t> most;  // nothing: no limit
};

// Parses ALG[#shards][@dims][%chunks], or several with limits between them, in elements:
// "rd:1k:direct". Throws Error with upstream's text.
std::vector<AlgorithmSpec> parse_reduce_spec(const std::string& spec);

// Parses "4x8x8": sizes from 1 on. Throws Error.
std::vector<int> parse_dims(const std::string& text);

}  // namespace cnn::bench
