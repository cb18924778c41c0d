#include "bench/flags/ddl_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

std::string ddl_refusal(const std::string& text, int ranks) {
  std::vector<std::string> notices;
  return tests::error_of([&] { read_ddl_options(text, ranks, notices); });
}

TEST(DdlOptions, HaveAModeWithDimensions) {
  std::vector<std::string> notices;
  const DdlMode mode = read_ddl_options("-mode p:6x2x1x1 ", 12, notices);
  EXPECT_EQ(mode.letter, 'p');
  EXPECT_EQ(mode.dims, (std::vector<int>{6, 2}));
  EXPECT_TRUE(notices.empty());
  EXPECT_EQ(read_ddl_options("", 4, notices).letter, 'p');
  EXPECT_EQ(read_ddl_options("-mode r", 4, notices).letter, 'r');
  EXPECT_EQ(read_ddl_options("-mode c:4", 4, notices).dims, std::vector<int>{4});
}

TEST(DdlOptions, TellWhatHasNoEffect) {
  std::vector<std::string> notices;
  EXPECT_EQ(read_ddl_options("-dump_iter 100 -mode b:2x2", 4, notices).letter, 'b');
  EXPECT_EQ(notices, std::vector<std::string>{"--ddl_options: -dump_iter 100 has no effect here"});
}

TEST(DdlOptions, AreRefusedByName) {
  EXPECT_EQ(ddl_refusal("-mode b:4x8", 16),
            "--ddl_options: -mode b:4x8: invalid dim size=2 usr_size=16: 4x8 make 32 ranks, and "
            "there are 16");
  EXPECT_THAT(ddl_refusal("-mode m:4", 4), testing::HasSubstr("--comm_backend=mpi"));
  for (const char* const text :
       {"-mode z:4", "-mode", "-mode b4", "-mode b:4x", "-mode b:x", "-mode b:-1x-4",
        "-mode r:65536x65536x65536x65536x4", "-rocket 4"}) {
    EXPECT_NE(ddl_refusal(text, 4), "") << text;
  }
}

}  // namespace
}  // namespace cnn::bench
