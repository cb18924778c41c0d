#include "layers/cpu/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/cpu/simd/loops.h"
#include "runtime/error.h"

namespace cnn::layers::cpu {
namespace {

TEST(Isa, IsNamedInOrderOfStrength) {
  EXPECT_EQ(to_string(Isa{}), "sse2");
  EXPECT_EQ(to_string(Isa{.avx2 = true, .avx512 = true}), "sse2 avx2 avx512");
}

TEST(Isa, UpToASetHasAllThatItNeeds) {
  EXPECT_EQ(up_to("avx2"), (Isa{.avx2 = true}));
  EXPECT_EQ(to_string(up_to("avx512_bf16")), "sse2 avx2 avx512 avx512_bf16");
  EXPECT_EQ(to_string(up_to("amx_bf16")), "sse2 avx2 avx512 avx512_bf16 avx512_fp16 amx_bf16");
}

TEST(Isa, ListsTheNamesInTheErrorForAnUnknownName) {
  try {
    up_to("avx3");
    FAIL() << "avx3 was accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "no instruction set is called 'avx3'; use one of avx2, avx512, avx512_bf16, "
                 "avx512_fp16, amx_bf16");
  }
}

TEST(Isa, HasTheNameOfItsLoops) {
  EXPECT_TRUE(up_to(avx2_loops().name).avx2);
  EXPECT_TRUE(up_to(avx512_loops().name).avx512);
  EXPECT_TRUE(up_to(avx512_bf16_loops().name).avx512_bf16);
  EXPECT_TRUE(up_to(avx512_fp16_loops().name).avx512_fp16);
}

TEST(Isa, IsNeverMoreThanTheHardwareHasOrTheEnvironmentAllows) {
  const Isa use = effective_isa();
  for (const Isa& most : {hardware_isa(), asked_limit().value_or(hardware_isa())}) {
    EXPECT_TRUE(most.avx2 || !use.avx2);
    EXPECT_TRUE(most.avx512 || !use.avx512);
    EXPECT_TRUE(most.avx512_bf16 || !use.avx512_bf16);
    EXPECT_TRUE(most.avx512_fp16 || !use.avx512_fp16);
    EXPECT_TRUE(most.amx_bf16 || !use.amx_bf16);
  }
}

TEST(Isa, IsNotedIfItIsLimited) {
  EXPECT_EQ(limit_note(up_to("avx512"), up_to("avx512")), std::nullopt);
  EXPECT_THAT(limit_note(up_to("avx512"), up_to("avx2")).value(),
              testing::StartsWith("of the instruction sets sse2 avx2 avx512 only sse2 avx2 are "
                                  "used: limited by "));
}

TEST(LibraryVersions, NameOneDnnAndItsInstructionSet) {
  ASSERT_EQ(library_versions().size(), 1U);
  EXPECT_EQ(library_versions()[0].name, "oneDNN");
  EXPECT_THAT(library_versions()[0].version, testing::MatchesRegex("[3-9]\\.[0-9]+\\..+ \\(.+\\)"));
}

}  // namespace
}  // namespace cnn::layers::cpu
