#include "layers/cpu/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cnn::layers::cpu {
namespace {

TEST(Isa, IsNamedInOrderOfStrength) {
  EXPECT_EQ(to_string(Isa{}), "sse2");
  EXPECT_EQ(to_string(Isa{.avx2 = true, .avx512 = true}), "sse2 avx2 avx512");
}

TEST(Isa, IsNeverMoreThanTheHardwareHas) {
  const Isa have = hardware_isa(), use = effective_isa();
  EXPECT_TRUE(have.avx2 || !use.avx2);
  EXPECT_TRUE(have.avx512 || !use.avx512);
  EXPECT_TRUE(have.avx512_bf16 || !use.avx512_bf16);
  EXPECT_TRUE(have.amx_bf16 || !use.amx_bf16);
}

TEST(Isa, BlocksImagesOnlyWhereVectorsHaveSixteenLanes) {
  const Layout expected = effective_isa().avx512 ? Layout::nchw16c : Layout::nhwc;
  EXPECT_EQ(preferred_layout(DataType::f32), expected);
}

TEST(LibraryVersions, NameOneDnnAndItsInstructionSet) {
  ASSERT_EQ(library_versions().size(), 1U);
  EXPECT_EQ(library_versions()[0].name, "oneDNN");
  EXPECT_THAT(library_versions()[0].version, testing::MatchesRegex("[3-9]\\.[0-9]+\\..+ \\(.+\\)"));
}

}  // namespace
}  // namespace cnn::layers::cpu
