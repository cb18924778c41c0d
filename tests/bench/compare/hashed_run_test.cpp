#include "bench/compare/hashed_run.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "bench/compare/bits.h"
#include "runtime/error.h"
#include "tests/bench/compare/hash_lines.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace cnn::compare {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string form_line = "cnn_benchmarks tensor hashes 1\n";
const std::string run_line = "run\t{\"batch_size\":8,\"mode\":\"training\"}\n";
const std::string two_tensors =
    "tensor\t0\t00000000000000c0\tconv#0\t0\tconv\tconv#0:0\tf32[2]\tf32[2] nchw\tv/w\n"
    "tensor\t1\tffffffffffffffff\trelu#1\t2\trelu\trelu#1:2\tf16[8, 4]\tf16[8, 4] nhwc\t\n";
const std::string good_start = form_line + run_line + two_tensors;
const std::string one_step = step_lines(1, {{0, 1}});

std::string refusal_of_file(const std::string& text) {
  return tests::error_of([&] { parse_hashes("h.txt", text); });
}

TEST(HashFile, HasTensorsAndTheStepsThatMadeThem) {
  const HashedRun run = parse_hashes(
      "h.txt", good_start + step_lines(7, {{1, 0xFEDC'BA98'7654'3210U}, {0, 1}, {1, 2}}) +
                   step_lines(9, {}));
  EXPECT_EQ(run.path, "h.txt");
  EXPECT_EQ(run.head.at("batch_size"), 8);
  ASSERT_EQ(run.tensors.size(), 2U);
  EXPECT_EQ(run.tensors[0].key, 0xC0U);
  EXPECT_EQ(run.tensors[0].layer, "v/w");
  EXPECT_EQ(run.tensors[1].key, 0xFFFF'FFFF'FFFF'FFFFU);
  EXPECT_EQ(run.tensors[1].output, "2");
  EXPECT_EQ(run.tensors[1].shape, "f16[8, 4]");
  EXPECT_EQ(run.tensors[1].stored, "f16[8, 4] nhwc");
  EXPECT_EQ(run.tensors[1].layer, "") << "the tensor belongs to no parameter";
  ASSERT_EQ(run.steps.size(), 2U);
  EXPECT_EQ(run.steps[0].number, 7);
  ASSERT_EQ(run.steps[0].entries.size(), 3U);
  EXPECT_EQ(run.steps[0].entries[0].tensor, 1U);
  EXPECT_EQ(run.steps[0].entries[0].hash, 0xFEDC'BA98'7654'3210U);
  EXPECT_EQ(run.steps[0].entries[2].tensor, 1U) << "the node was recomputed";
  EXPECT_TRUE(run.steps[1].entries.empty());
  EXPECT_FALSE(run.cut_off);
}

TEST(HashFile, MayNameTensorsBetweenSteps) {
  const HashedRun run = parse_hashes(
      "h.txt", good_start + one_step + "tensor\t2\t1\tn\t0\to\tname\tf32[1]\tf32[1] nchw\t\n" +
                   step_lines(2, {{2, 5}}));
  EXPECT_EQ(run.tensors.size(), 3U);
  EXPECT_EQ(run.steps[1].entries[0].tensor, 2U);
}

TEST(HashFile, LacksOnlyAStepThatIsCutOff) {
  const std::string whole = good_start + one_step + step_lines(2, {{0, 5}});
  const std::size_t second = good_start.size() + one_step.size() + std::string("step\t2\n").size();
  for (std::size_t size = second; size < whole.size(); ++size) {
    const HashedRun run = parse_hashes("h.txt", whole.substr(0, size));
    EXPECT_EQ(run.steps.size(), 1U) << size;
    EXPECT_TRUE(run.cut_off) << size;
  }
}

TEST(HashFile, SaysWhyItHasNoWholeStep) {
  EXPECT_EQ(refusal_of_file(good_start + one_step.substr(0, one_step.size() - 1)),
            "h.txt: cut off before the end of its first step");
  EXPECT_THAT(refusal_of_file(good_start),
              StartsWith("h.txt: no steps: did the run end before the first that --hash_steps"));
}

TEST(HashFile, IsRefusedIfKindOrFormDiffer) {
  for (const std::string text : {"", "{}\n", "cnn_benchmarks tensor hashes 1"}) {
    EXPECT_EQ(refusal_of_file(text), "h.txt: no file of cnn_benchmarks --hash_file");
  }
  for (const std::string form : {"2", "10", "1 ", ""}) {
    EXPECT_THAT(refusal_of_file("cnn_benchmarks tensor hashes " + form + "\n"),
                HasSubstr("a file of form " + form + ", and this program reads 1;"));
  }
}

TEST(HashFile, NamesTheDamagedLine) {
  for (const std::string bad : {"step\tone\n",
                                "step\t1\t2\n",
                                "step\n",
                                "0\t1\n",
                                "step\t1\n2\t1\n",
                                "step\t1\n-1\t1\n",
                                "step\t1\n0\txyz\n",
                                "step\t1\n0\t0x1\n",
                                "step\t1\n0\t10000000000000000\n",
                                "step\t1\n0\t1\t2\n",
                                "step\t1\nend\t1\t5\t0\n",
                                "step\t1\nend\t2\t0\t0\n",
                                "step\t1\nend\t1\t0\n",
                                "step\t1\nend\t1\t0\t1\n",
                                "step\t1\nend\t1\t0\tall\n",
                                "step\t1\nstep\t2\n",
                                "end\t1\t0\t0\n",
                                "tensor\t3\t1\n",
                                "tensor\t3\t1\tn\t0\to\tname\tshape\tstored\t\n",
                                "run\t{\n",
                                "run\n",
                                "nonsense\n",
                                "\n"}) {
    const std::string text = good_start + bad;
    const auto line = std::count(text.begin(), text.end(), '\n');
    EXPECT_EQ(refusal_of_file(text), "h.txt: damaged in line " + std::to_string(line) +
                                         "; it is no file of --hash_file, or was changed")
        << bad;
  }
}

// A changed digit is no difference of what two runs compute.
TEST(HashFile, IsDamagedIfAHashChanged) {
  std::string text = good_start + step_lines(1, {{0, 0x11}, {1, 0x22}});
  text.replace(text.find("000011"), 6, "000013");
  EXPECT_THAT(refusal_of_file(text), StartsWith("h.txt: damaged in line 8;"));
}

// A recursive walk over this many levels would overflow the stack.
TEST(HashFile, IsDamagedIfItsHeadHasTooManyLevels) {
  constexpr std::size_t levels = 200'000;
  const std::string text = form_line + "run\t{\"mode\":" + std::string(levels, '[') +
                           std::string(levels, ']') + "}\n" + two_tensors + one_step;
  EXPECT_THAT(tests::error_of([&] {
                const HashedRun run = parse_hashes("h.txt", text);
                compare_bits(run, run);
              }),
              StartsWith("h.txt: damaged in line 2;"));
}

TEST(HashFile, IsReadFromItsPath) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.write("hashes.txt", good_start + one_step).string();
  EXPECT_EQ(read_hashes(path).steps.size(), 1U);
  EXPECT_THAT(tests::error_of([&] { read_hashes(path + "x"); }),
              HasSubstr(path + "x: no such file"));
}

}  // namespace
}  // namespace cnn::compare
