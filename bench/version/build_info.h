#pragma once

#include <optional>
#include <string_view>

// The version and commit of the build; the source is written by scripts/cmake/WriteBuildInfo.cmake.
namespace cnn::bench {

// Returns the semantic version, such as "0.1.0".
std::string_view build_version();

// Returns the full hash of the commit that was built, followed by "-dirty" if files differed from
// it; nothing if the build was not in a git checkout.
std::optional<std::string_view> build_commit();

}  // namespace cnn::bench
