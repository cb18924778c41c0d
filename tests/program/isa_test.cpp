// Tests CNN_MAX_CPU_ISA, the environment variable that limits the instruction sets.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

struct Sets {
  Finished run;
  std::string used, machine;  // from the result file; machine: the whole object
};

Sets run_once() {
  const TemporaryFolder folder;
  const Finished run =
      run_program({"--device=cpu", "--data_name=cifar10", "--model=trivial", "--batch_size=2",
                   "--num_batches=1", "--num_warmup_batches=0", "--nomeasure_ceilings",
                   "--result_json=" + (folder / "r.json")});
  EXPECT_EQ(run.status, 0) << run.err;
  const auto result = nlohmann::json::parse(read_file(folder / "r.json"));
  return {run, result["machine"]["cpu"]["instruction_sets"], result["machine"].dump()};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(InstructionSets, AreLimitedByTheEnvironmentAndThatIsSaid) {
  const Sets all = run_once();
  const Environment limit("CNN_MAX_CPU_ISA", "avx2");
  const Sets limited = run_once();
  EXPECT_EQ(limited.used, "sse2 avx2");
  const std::string note = "only sse2 avx2 are used: limited by CNN_MAX_CPU_ISA=avx2";
  EXPECT_EQ(contains(limited.run.err, note), all.used != limited.used) << limited.run.err;
  EXPECT_FALSE(contains(limited.machine, "avx512")) << limited.machine;  // oneDNN uses none either
}

TEST(InstructionSets, AreNotSwitchedOnIfTheProcessorLacksThem) {
  const Sets all = run_once();
  const Environment limit("CNN_MAX_CPU_ISA", "amx_bf16");
  const Sets more = run_once();
  EXPECT_EQ(more.used, all.used);
  EXPECT_EQ(contains(more.run.err, "limited by"), contains(all.run.err, "limited by"));
}

TEST(InstructionSets, RejectAnUnknownName) {
  const Environment limit("CNN_MAX_CPU_ISA", "avx3");
  const Finished run = run_program({"--device=cpu", "--model=trivial"});
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.err,
            "CNN_MAX_CPU_ISA: no instruction set is called 'avx3'; use one of avx2, avx512, "
            "avx512_bf16, avx512_fp16, amx_bf16\n");
}

TEST(InstructionSets, NameTheirLimitIfTheyAreTooFew) {
  const Environment limit("ONEDNN_MAX_CPU_ISA", "SSE41");
  const Finished run = run_program({"--device=cpu", "--model=trivial"});
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(contains(run.err, "needs AVX2 and FMA: of the instruction sets sse2 avx2"))
      << run.err;
  EXPECT_TRUE(contains(run.err, "limited by ONEDNN_MAX_CPU_ISA=SSE41\n")) << run.err;
}

TEST(InstructionSets, AreLimitedByOneVariableOnly) {
  const Environment ours("CNN_MAX_CPU_ISA", "avx2"), theirs("ONEDNN_MAX_CPU_ISA", "AVX2");
  const Finished run = run_program({"--device=cpu", "--model=trivial"});
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(contains(run.err, "drop one of them")) << run.err;
}

}  // namespace
}  // namespace cnn::tests
