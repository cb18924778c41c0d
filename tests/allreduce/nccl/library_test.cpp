#include "allreduce/nccl/library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/support/error_of.h"

namespace cnn::allreduce::nccl {
namespace {

using testing::HasSubstr;

TEST(NcclLibrary, IsReportedInOneClearLineIfItIsMissing) {
  EXPECT_THAT(tests::error_of([] { open_library("no_such_nccl.so"); }),
              testing::AllOf(HasSubstr("NCCL cannot be loaded: no_such_nccl.so"),
                             HasSubstr("--comm_backend=ring")));
  EXPECT_THAT(tests::error_of([] { open_library("libc.so.6"); }), HasSubstr("is no NCCL"));
}

TEST(NcclLibrary, HasAllCalledFunctionsOnThisMachine) {
  Library library;
  if (const std::string why = tests::error_of([&] { library = open_library(); }); !why.empty()) {
    GTEST_SKIP() << why;
  }
  EXPECT_GE(library.version, min_version);
  for (const bool found :
       {library.get_unique_id != nullptr, library.init_rank != nullptr,
        library.all_reduce != nullptr, library.group_start != nullptr, library.group_end != nullptr,
        library.make_scaled_sum != nullptr, library.async_error != nullptr,
        library.abort != nullptr, library.error_text != nullptr}) {
    EXPECT_TRUE(found);
  }
  EXPECT_FALSE(std::string(library.error_text(remote_error)).empty());
}

TEST(NcclLibrary, WritesVersionsWithPoints) {
  EXPECT_EQ(version_text(22809), "2.28.9");
  EXPECT_EQ(version_text(min_version), "2.14.0");
}

}  // namespace
}  // namespace cnn::allreduce::nccl
