#include "runtime/cuda/support.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cnn::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Support, RefusesDevicesBelowAmpereInOneSentence) {
  EXPECT_THAT(why_unsupported("Tesla T4", 7, 5),
              AllOf(HasSubstr("Tesla T4 has compute capability 7.5"), HasSubstr("needs 8.0"),
                    testing::Not(HasSubstr("\n"))));
  EXPECT_THAT(why_unsupported("NVIDIA A100", 8, 0), IsEmpty());
  EXPECT_THAT(why_unsupported("NVIDIA B200", 10, 0), IsEmpty());
}

TEST(Support, SaysThatTheDriverIsTooOldForTheToolkit) {
  EXPECT_THAT(why_no_device(cudaErrorInsufficientDriver, 12020, 13000),
              AllOf(HasSubstr("takes CUDA up to 12.2"), HasSubstr("built with CUDA 13.0")));
  EXPECT_THAT(why_no_device(cudaErrorInsufficientDriver, 0, 13000), HasSubstr("no NVIDIA driver"));
}

TEST(Support, SaysWhatTheRuntimeSaidOtherwise) {
  EXPECT_EQ(why_no_device(cudaErrorNoDevice, 13000, 13000),
            "cudaErrorNoDevice: no CUDA-capable device is detected");
  EXPECT_EQ(why_no_device(cudaSuccess, 13000, 13000),
            "cudaErrorNoDevice: no CUDA-capable device is detected");
  // A driver that is older than the toolkit only in its minor version is compatible.
  EXPECT_THAT(why_no_device(cudaErrorNoDevice, 12000, 12080), HasSubstr("no CUDA-capable device"));
}

TEST(Support, SaysThatTheDriverCompilesWhereThereIsNoMachineCode) {
  constexpr std::array built{800, 900};
  EXPECT_THAT(compilation_note(10, 0, built),
              AllOf(HasSubstr("compute capability 10.0"), HasSubstr("PTX"),
                    HasSubstr("CMAKE_CUDA_ARCHITECTURES=100")));
  for (const auto& [major, minor] : {std::pair{8, 0}, {8, 6}, {8, 9}, {9, 0}}) {
    EXPECT_THAT(compilation_note(major, minor, built), IsEmpty()) << major << '.' << minor;
  }
}

TEST(Support, RefusesACardThatIsOlderThanAllOfTheCode) {
  EXPECT_THAT(why_not_built_for(8, 0, std::array{860, 900}),
              AllOf(HasSubstr("compute capability 8.0"), HasSubstr("CMAKE_CUDA_ARCHITECTURES=80"),
                    HasSubstr("--device=cpu")));
  EXPECT_THAT(why_not_built_for(8, 6, std::array{860, 900}), IsEmpty());
  EXPECT_THAT(why_not_built_for(8, 9, std::array{800}), IsEmpty());
  EXPECT_THAT(why_not_built_for(8, 0, {}), IsEmpty()) << "a build that does not know";
}

TEST(Support, KnowsWhatItWasBuiltFor) { EXPECT_FALSE(built_architectures().empty()); }

TEST(Support, WritesVersionsWithAPoint) { EXPECT_EQ(version_text(12020), "12.2"); }

}  // namespace
}  // namespace cnn::cuda
