// Checks that CNN_MAX_CPU_ISA limits the instruction sets of this process. Other tests that run
// with the limit rely on it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>

#include "layers/cpu/isa.h"
#include "layers/cpu/kernels.h"
#include "layers/cpu/rows.h"

namespace cnn::layers::cpu {
namespace {

// Returns oneDNN's name of the largest of these sets.
std::string name_in_onednn(const Isa& isa) {
  return isa.avx512_fp16   ? "avx512_core_fp16"
         : isa.avx512_bf16 ? "avx512_core_bf16"
         : isa.avx512      ? "avx512_core"
                           : "avx2";
}

TEST(IsaLimit, ActsOnOneDnnAndOnOwnLoops) {
  const std::optional<Isa> limit = asked_limit();
  if (!limit || !to_string(hardware_isa()).starts_with(to_string(*limit) + " ")) {
    GTEST_SKIP() << "CNN_MAX_CPU_ISA does not limit this processor";
  }
  ASSERT_EQ(effective_isa(), *limit);
  EXPECT_EQ(KernelChoice{}.isa, *limit) << "the default instruction sets of a kernel table";
  EXPECT_STREQ(loops_for(effective_isa()).name, limit->avx512_fp16   ? "avx512_fp16"
                                                : limit->avx512_bf16 ? "avx512_bf16"
                                                : limit->avx512      ? "avx512"
                                                                     : "avx2");
  for (const LibraryVersion& library : library_versions()) {
    EXPECT_THAT(library.version, testing::EndsWith(" (" + name_in_onednn(*limit) + ")"));
  }
}

}  // namespace
}  // namespace cnn::layers::cpu
