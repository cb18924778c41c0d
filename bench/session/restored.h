#pragma once

#include <cstdint>
#include <string>
#include <tuple>

namespace cnn::bench {

// A loaded checkpoint.
struct Restored {
  std::string path;
  std::int64_t global_step = 0;

  static auto fields(auto& self) { return std::tie(self.path, self.global_step); }
};

}  // namespace cnn::bench
