#pragma once

#include <optional>
#include <string_view>

// The version and commit of the build; the source is written by scripts/cmake/WriteBuildInfo.cmake.
namespace cnn::bench {

// Semantic version, "0.1.0".
std::string_view build_version();

// Full hash of the commit that was built, with "-dirty" after it where files differed from it; none
// outside of a git checkout.
std::optional<std::string_view> build_commit();

}  // namespace cnn::bench
