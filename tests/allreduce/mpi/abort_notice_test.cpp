#include "allreduce/mpi/abort_notice.h"

#include <gtest/gtest.h>
#include <string>

namespace cnn::allreduce {
namespace {

TEST(AbortNotice, IsReadAsItWasWritten) {
  for (const std::string why : {"", "a word", " two  blanks ", "a line\nand another", "-1 7 42"}) {
    for (const int culprit : {-1, 0, 12345}) {
      const AbortNotice read =
          AbortNotice::read(AbortNotice{.origin = 3, .culprit = culprit, .why = why}.text());
      EXPECT_EQ(read.origin, 3);
      EXPECT_EQ(read.culprit, culprit);
      EXPECT_EQ(read.why, why);
    }
  }
}

TEST(AbortNotice, HasTheOriginThenTheCulpritThenTheReason) {
  EXPECT_EQ((AbortNotice{.origin = 4, .culprit = 2, .why = "rank 2 is lost: it has ended"}.text()),
            "4 2 rank 2 is lost: it has ended");
}

TEST(AbortNotice, NamesNobodyWhereThereIsNothingToRead) {
  const AbortNotice notice = AbortNotice::read("");
  EXPECT_EQ(notice.origin, -1);
  EXPECT_EQ(notice.culprit, -1);
  EXPECT_EQ(notice.why, "");
}

}  // namespace
}  // namespace cnn::allreduce
