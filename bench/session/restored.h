#pragma once

#include <cstdint>
#include <string>

namespace cnn::bench {

// A checkpoint that was loaded.
struct Restored {
  std::string path;
  std::int64_t global_step = 0;
};

}  // namespace cnn::bench
