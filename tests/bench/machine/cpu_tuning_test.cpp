#include "bench/machine/cpu_tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/machine/cpu_backend.h"
#include "layers/conv.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A backend without kernels, and tuning that stores its choices in a file of a folder.
class CpuTuning : public testing::Test {
 protected:
  Backend tuned(double seconds = 60) {
    Config config{.device = DeviceKind::cpu};
    config.cpu.intra_threads = 1;
    config.gpu.plan_cache = folder / "plans";
    config.gpu.tune_seconds = seconds;
    Backend backend = cpu_backend().make(config);
    backend.kernels = {};
    backend.notes.clear();
    add_cpu_tuning(config, "a processor", 1, backend);
    return backend;
  }

  // Asks the backend's table for a convolution, so that its kernels are timed.
  static bool describes_a_convolution(const Backend& backend) {
    const TensorDesc image{.shape = {1, 16, 8, 8}}, weights{.shape = {16, 16, 1, 1}};
    return backend.kernels
        .describe(layers::Conv2d({.window = {}}), {.in = {image, weights}, .out = {image}})
        .has_value();
  }

  const tests::TemporaryFolder folder;
};

TEST_F(CpuTuning, SaysBeforehandHowLongItMayTakeAndHowManyChoicesAreKnown) {
  const Backend backend = tuned(7);
  EXPECT_THAT(backend.tuning.notice, HasSubstr("for 7 s at most (--tune_seconds)"));
  EXPECT_THAT(backend.notes, ElementsAre("plan cache: 0 choices in " + (folder / "plans")));
}

TEST_F(CpuTuning, TellsAtMostOnceWhatWasTimed) {
  Backend backend = tuned();
  EXPECT_THAT(backend.tuning.take_notes(), IsEmpty()) << "nothing was asked for";
  describes_a_convolution(backend);
  backend.tuning.take_notes();
  EXPECT_THAT(backend.tuning.take_notes(), IsEmpty()) << "nothing is new";
}

TEST_F(CpuTuning, GoesOnWithoutACacheThatCannotBeRead) {
  folder.write("plans/is a folder", "");
  const Backend backend = tuned();
  EXPECT_THAT(backend.notes, ElementsAre(HasSubstr("plan cache: not used, ")));
  EXPECT_NE(backend.tuning.choices, nullptr);
}

TEST_F(CpuTuning, AdoptsTheChoicesOfAnotherRank) {
  Backend first = tuned(), second = tuned();
  describes_a_convolution(first);
  second.tuning.adopt(first.tuning.choices());
  EXPECT_EQ(describes_a_convolution(second), describes_a_convolution(first));
  EXPECT_EQ(second.tuning.choices(), first.tuning.choices());
}

}  // namespace
}  // namespace cnn::bench
