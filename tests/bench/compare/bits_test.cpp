#include "bench/compare/bits.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/bench/compare/hash_lines.h"

namespace cnn::compare {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr int conv_key = 0xC0, relu_key = 0xE0, weight_key = 0xF0;

std::string head(const std::string& model = "resnet20", int seed = 1) {
  return fmt::format(
      "cnn_benchmarks tensor hashes 1\nrun\t{{\"batch_size\":8,\"mode\":\"training\","
      "\"model\":{{\"name\":\"{}\"}},\"config\":{{\"seed\":{},\"hash_file\":\"{}\"}}}}\n",
      model, seed, seed);
}

std::string tensor(int index, int key, const std::string& op, const std::string& shape = "f32[2]") {
  return fmt::format("tensor\t{}\t{:016x}\t{}#{}\t0\t{}\t{}#{}:0\t{}\t{} nchw\tv/w\n", index, key,
                     op, index, op, op, index, shape, shape);
}

const std::string usual_tensors =
    tensor(0, conv_key, "conv") + tensor(1, relu_key, "relu") + tensor(2, weight_key, "update");

HashedRun hashed_run_of(const std::string& path, const std::string& text) {
  return parse_hashes(path, text);
}

HashedRun usual(const std::string& path, int first = 1, int second = 2) {
  return hashed_run_of(path, head() + usual_tensors + step_lines(1, {{0, 1}, {1, 2}, {2, 3}}) +
                                 step_lines(2, {{0, first}, {1, second}, {2, 6}}));
}

std::string refusal_of_hashes(const HashedRun& a, const HashedRun& b) {
  try {
    compare_bits(a, b);
  } catch (const Error& error) {
    return error.what();
  }
  return "compared";
}

TEST(Bits, AreEqualForEqualRuns) {
  const HashedRun a = usual("a"), b = usual("b");
  const BitComparison comparison = compare_bits(a, b);
  EXPECT_EQ(exit_code_of(comparison), 0);
  EXPECT_EQ(bits_text(a, b, comparison),
            "a and b are equal bit by bit: 3 tensors in each of 2 steps\n");
}

TEST(Bits, AreNamedByTheFirstStepAndTensorThatDiffer) {
  const HashedRun a = usual("a"), b = usual("b", 1, 0xBAD);
  const BitComparison comparison = compare_bits(a, b);
  EXPECT_EQ(exit_code_of(comparison), 1);
  EXPECT_THAT(bits_text(a, b, comparison),
              AllOf(StartsWith("a and b differ first in step 2, in relu#1:0: output 0 of node "
                               "relu#1, op relu, f32[2] nchw, of v/w: 0000000000000002 and "
                               "0000000000000bad\n"),
                    HasSubstr("1 of 3 tensors differ in step 2: relu 1\n"),
                    HasSubstr("1 of 2 steps differ\n")));
}

TEST(Bits, AreCountedByOperation) {
  const HashedRun a = usual("a"), b = usual("b", 7, 8);
  const BitComparison comparison = compare_bits(a, b);
  EXPECT_EQ(comparison.counts.different, 2U);
  EXPECT_EQ(comparison.counts.different_by_op.at("conv"), 1U);
  EXPECT_EQ(comparison.first->tensor.op, "conv");
}

// A run with --lms numbers its tensors differently, in another order, and recomputes nodes.
TEST(Bits, AreEqualIfARunRecomputesTheValues) {
  const std::string tensors =
      tensor(0, weight_key, "update") + tensor(1, conv_key, "conv") + tensor(2, relu_key, "relu");
  const HashedRun again =
      hashed_run_of("b", head() + tensors + step_lines(1, {{1, 1}, {2, 2}, {1, 1}, {0, 3}}) +
                             step_lines(2, {{1, 1}, {2, 2}, {0, 6}, {2, 2}}));
  const BitComparison comparison = compare_bits(usual("a"), again);
  EXPECT_EQ(exit_code_of(comparison), 0);
  EXPECT_EQ(comparison.counts.compared, 3U);
}

TEST(Bits, DifferWhereARunComputesOneValueTwiceWithTwoResults) {
  const HashedRun a = usual("a");
  const HashedRun b = hashed_run_of(
      "b", head() + usual_tensors + step_lines(1, {{0, 1}, {1, 2}, {0, 0xBAD}, {2, 3}}));
  const BitComparison comparison = compare_bits(a, b);
  EXPECT_EQ(exit_code_of(comparison), 1);
  EXPECT_THAT(bits_text(a, b, comparison),
              StartsWith("b computed one value twice in step 1, with two results"));
}

TEST(Bits, CountTensorsThatOnlyOneRunHas) {
  const HashedRun a = usual("a");
  const HashedRun b =
      hashed_run_of("b", head() + tensor(0, conv_key, "conv") + tensor(1, 0xAA, "add") +
                             step_lines(1, {{0, 1}, {1, 9}}));
  const BitComparison comparison = compare_bits(a, b);
  EXPECT_EQ(exit_code_of(comparison), 0);
  EXPECT_THAT(bits_text(a, b, comparison),
              AllOf(HasSubstr("1 tensors in each of 1 steps"),
                    HasSubstr("2 more tensors of a step are in a only"),
                    HasSubstr("1 more tensors of a step are in b only"),
                    HasSubstr("a has 2 hashed steps, b has 1; 1 were compared")));
}

TEST(Bits, CannotBeComparedWhereNetworksOrStepsDiffer) {
  const HashedRun a = usual("a");
  const std::string tail = usual_tensors + step_lines(1, {{0, 1}});
  EXPECT_EQ(refusal_of_hashes(a, hashed_run_of("b", head("vgg16") + tail)),
            "a and b cannot be compared: model resnet20 and vgg16");
  EXPECT_THAT(
      refusal_of_hashes(a, hashed_run_of("b", head() + usual_tensors + step_lines(9, {{0, 1}}))),
      HasSubstr("no step in common: a has 1 to 2, b has 9 to 9"));
  EXPECT_THAT(
      refusal_of_hashes(a, hashed_run_of("b", head() + tensor(0, conv_key, "conv", "f32[3]") +
                                                  step_lines(1, {{0, 1}}))),
      HasSubstr("conv#0:0 is f32[2] in a and f32[3] in b"));
  EXPECT_THAT(refusal_of_hashes(
                  a, hashed_run_of("b", head() + tensor(0, 0xAA, "add") + step_lines(1, {{0, 1}}))),
              HasSubstr("no tensor in common"));
}

TEST(Bits, AreComparedWithANoteIfFlagsDiffer) {
  const HashedRun a = usual("a");
  const HashedRun b = hashed_run_of(
      "b", head("resnet20", 2) + usual_tensors + step_lines(1, {{0, 1}, {1, 2}, {2, 3}}));
  const std::string text = bits_text(a, b, compare_bits(a, b));
  EXPECT_THAT(text,
              AllOf(HasSubstr("note: --seed: 1 before, 2 now\n"), Not(HasSubstr("hash_file"))));
}

}  // namespace
}  // namespace cnn::compare
