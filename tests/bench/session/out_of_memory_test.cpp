#include "bench/session/out_of_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/session/session.h"
#include "tests/bench/session/device_run.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// The first tensor of a step is the step's number, a scalar, which the message must not name.
TEST(OutOfMemory, NamesTheLargestTensorWhereNotEvenThatFits) {
  tests::DeviceRun run({}, std::size_t{1} << 30U);
  EXPECT_THAT(tensorflow_oom_line(run.session().plan(), 0, /*on_gpu=*/false),
              AllOf(HasSubstr("OOM when allocating tensor with shape["), HasSubstr("type float"),
                    Not(HasSubstr("shape[]"))));
}

}  // namespace
}  // namespace cnn::bench
