#include "bench/version/version_lines.h"

#include "bench/version/build_info.h"

namespace cnn::bench {

std::vector<std::string> version_lines(std::string_view program) {
  return {std::string(program) + " " + std::string(build_version()),
          "commit: " + std::string(build_commit().value_or("unknown"))};
}

}  // namespace cnn::bench
