#include "bench/version/version_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace cnn::bench {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::MatchesRegex;

TEST(VersionLines, NameTheProgramItsVersionAndItsCommit) {
  EXPECT_THAT(version_lines("a_program"),
              ElementsAre(MatchesRegex("a_program [0-9]+\\.[0-9]+\\.[0-9]+"),
                          AnyOf(MatchesRegex("commit: [0-9a-f]{40}(-dirty)?"),
                                std::string("commit: unknown"))));
}

}  // namespace
}  // namespace cnn::bench
