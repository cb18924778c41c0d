// Checks that the expressions of public tools, which parse the output of tf_cnn_benchmarks, parse
// ours. Most tools run the program with "2>&1" and therefore see the lines of stderr too.
#include <algorithm>
#include <cstddef>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tests/program/rank_training.h"

namespace cnn::tests {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Gt;
using testing::SizeIs;

using Flags = std::vector<std::string>;

const Flags& parsed_run() {
  static const Flags flags{"--device=cpu",    "--model=lenet",          "--batch_size=1",
                           "--num_batches=3", "--num_warmup_batches=1", "--display_every=1"};
  return flags;
}

Flags short_run_with(const Flags& more) {
  Flags flags = parsed_run();
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

// Runs the program like "cnn_benchmarks ... 2>&1".
Finished run_with_both_streams(const Flags& more) {
  Finished run = run_in_shell(short_run_with(more), "2>&1");
  EXPECT_EQ(run.status, 0) << run.out;
  return run;
}

// Returns group 1 of each match of an expression in the text.
std::vector<std::string> matches_of(const std::string& expression, const std::string& text) {
  const std::regex compiled(expression);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), compiled), end; at != end; ++at) {
    found.push_back((*at)[1].str());
  }
  return found;
}

std::vector<double> numbers_of(const std::string& expression, const std::string& text) {
  std::vector<double> numbers;
  for (const std::string& word : matches_of(expression, text)) {
    numbers.push_back(std::stod(word));
  }
  return numbers;
}

std::vector<std::string> parsed_lines_with(const Finished& run, const std::string& part) {
  std::vector<std::string> found = run.lines();
  std::erase_if(found,
                [&](const std::string& line) { return line.find(part) == std::string::npos; });
  return found;
}

// The expressions come from PerfKitBenchmarker, CSCS's ReFrame tests and a Mellanox harness.
const std::vector<std::string>& expressions_of_totals() {
  static const std::vector<std::string> expressions{
      R"(total images/sec: (\S+))", R"(total images/sec:\s+(\S+))",
      R"(total images\/sec: ([0-9\.]+))", R"((total images/sec:.+\d+\.\d+))"};
  return expressions;
}

void expect_totals(const Finished& run, std::size_t processes) {
  for (const std::string& expression : expressions_of_totals()) {
    EXPECT_THAT(matches_of(expression, run.out), SizeIs(processes)) << expression << run.out;
  }
  EXPECT_THAT(numbers_of(R"(total images/sec: (\S+))", run.out), Each(Gt(0)));
  // A deep learning benchmarking suite splits the line by columns.
  for (const std::string& line : parsed_lines_with(run, "total images/sec")) {
    EXPECT_TRUE(line.starts_with("total images/sec:")) << line;
    EXPECT_GT(std::stod(line.substr(17)), 0) << line;
  }
}

// Every line with images/sec on either stream must be a step or the total. A Mellanox harness stops
// at any other line, and awk scripts add up the third column.
void expect_steps(const Finished& run, std::size_t steps, std::size_t tokens) {
  const std::regex step(
      R"(([0-9]+)\s+images\/sec: ([0-9\.]+) \+\/- ([0-9\.]+) \(jitter = ([0-9\.]+)\)\s+([0-9\.]+).*)");
  std::size_t found = 0;
  for (const std::string& line : parsed_lines_with(run, "images/sec")) {
    if (line.find("total ") == std::string::npos) {
      EXPECT_TRUE(std::regex_match(line, step)) << line;
      EXPECT_EQ(words_of(line).size(), tokens) << line;
      ++found;
    }
  }
  EXPECT_EQ(found, steps) << run.out;
  EXPECT_THAT(numbers_of(R"([0-9]*\timages\/sec:[ ]*([0-9]*\.[0-9]*))", run.out),
              AllOf(SizeIs(steps), Each(Gt(0))));
}

struct ParsedMode {
  Flags flags;
  std::size_t tokens;  // of a step line
};

TEST(OutputParsers, ReadStepsAndTheTotalOfEveryMode) {
  const std::vector<ParsedMode> modes{
      {{}, 9},  // also with the lines after the last step
      {{"--forward_only", "--nomeasure_ceilings"}, 11},
      {{"--print_training_accuracy", "--nomeasure_ceilings"}, 11},
      {{"--num_gpus=2", "--comm_calibrate=off", "--nomeasure_ceilings"}, 9},
      {{"--num_gpus=2", "--variable_update=replicated", "--comm_calibrate=off",
        "--nomeasure_ceilings"},
       9}};
  for (const ParsedMode& mode : modes) {
    const Finished run = run_with_both_streams(mode.flags);
    expect_totals(run, 1);
    expect_steps(run, 3, mode.tokens);
    EXPECT_THAT(parsed_lines_with(run, "1\timages/sec"), SizeIs(1)) << run.out;
  }
}

TEST(OutputParsers, FindTheSpeedOfTheHundredthStep) {
  const Finished run = run_with_both_streams(
      {"--num_batches=100", "--display_every=10", "--forward_only", "--nomeasure_ceilings"});
  EXPECT_THAT(numbers_of(R"([1][0][0]\simages\Ssec\S\s(\S+))", run.out),
              AllOf(SizeIs(1), Each(Gt(0))));
}

TEST(OutputParsers, FindTheBatchOfTheHeader) {
  const Finished run =
      run_with_both_streams({"--num_gpus=2", "--comm_calibrate=off", "--nomeasure_ceilings"});
  const std::vector<std::string> lines = parsed_lines_with(run, "Batch size: ");
  ASSERT_THAT(lines, SizeIs(1)) << run.out;
  EXPECT_EQ(std::stoi(lines[0].substr(lines[0].rfind(':') + 1)), 2);
}

void expect_accuracies(const Finished& run, std::size_t evaluations) {
  const std::vector<std::string> lines = parsed_lines_with(run, "Accuracy @ ");
  ASSERT_THAT(lines, SizeIs(evaluations)) << run.out;
  for (const std::string& line : lines) {
    const std::vector<std::string> words = words_of(line);
    ASSERT_EQ(words.size(), 12U) << line;
    for (const std::string& accuracy : {words[4], words[9]}) {
      EXPECT_TRUE(std::regex_match(accuracy, std::regex(R"([01]\.[0-9]{4})"))) << line;
    }
  }
}

TEST(OutputParsers, ReadTheAccuraciesOfAnEvaluation) {
  const TemporaryFolder folder;
  const std::string train_dir = "--train_dir=" + (folder / "t");
  run_with_both_streams({train_dir, "--nomeasure_ceilings"});
  const Finished run = run_with_both_streams({train_dir, "--eval", "--eval_dir=" + (folder / "e")});
  expect_accuracies(run, 1);
  expect_totals(run, 1);
  expect_accuracies(run_with_both_streams({"--eval_during_training_every_n_steps=2",
                                           "--num_eval_batches=1", "--nomeasure_ceilings"}),
                    2);
}

// Superbench does not run tf_cnn_benchmarks. Its readers of bandwidth tools find a line by its name
// and take the first number with a decimal point. Its readers of training logs wait for lines of
// other programs, which our output must not contain.
TEST(OutputParsers, GiveSuperBenchTheTotalAndNothingElse) {
  const Finished run = run_with_both_streams({"--print_training_accuracy"});
  const std::vector<std::string> totals = parsed_lines_with(run, "total images/sec");
  ASSERT_THAT(totals, SizeIs(1)) << run.out;
  const std::vector<std::string> figures = matches_of("([0-9]+.[0-9]+)", totals[0]);
  ASSERT_THAT(figures, SizeIs(1)) << totals[0];
  EXPECT_EQ("total images/sec: " + figures[0], totals[0]);
  for (const char* others :
       {"elapsed time per iteration", "max allocated", "__superbench__ begin",
        "\"samples_per_second\": ", "benchmark implementation mode config score"}) {
    EXPECT_THAT(parsed_lines_with(run, others), SizeIs(0)) << others;
  }
  for (const char* expression :
       {R"((TFLOPs: [0-9]+\.[0-9]+))", R"((TFLOP/s/GPU\): [0-9]+\.[0-9]+))",
        R"(allocated: ([0-9]+\.[0-9]+))"}) {
    EXPECT_THAT(matches_of(expression, run.out), SizeIs(0)) << expression;
  }
}

// Milabench does not run tf_cnn_benchmarks either. It takes rates from JSON objects inside escape
// sequences of the output or from a pipe of its own. It keeps every other line as text and looks
// for a failure's cause after the word Traceback.
TEST(OutputParsers, LetMilabenchKeepEveryLineAsText) {
  const Finished run = run_with_both_streams({"--print_training_accuracy"});
  EXPECT_EQ(run.out.find('\x1b'), std::string::npos) << run.out;
  EXPECT_THAT(parsed_lines_with(run, "Traceback"), SizeIs(0));
  for (const std::string& line : run.lines()) {
    EXPECT_FALSE(nlohmann::json::parse(line, nullptr, false).is_object()) << line;
  }
  EXPECT_THAT(parsed_lines_with(run, "total images/sec: "), SizeIs(1));
}

class OutputParsersOfRanks : public SeveralProcesses {};

// ReFrame's Horovod test expects one total per rank and takes their mean. A summary of Kubernetes
// jobs counts the GPUs by the lines of the first step.
TEST_F(OutputParsersOfRanks, CountATotalAndAFirstStepOfEachRank) {
  for (const std::string mode : {"horovod", "ddl", "collective_all_reduce"}) {
    const Finished run =
        run_ranks(2, short_run_with({"--variable_update=" + mode, "--nomeasure_ceilings",
                                     "--comm_calibrate=off"}));
    ASSERT_EQ(run.status, 0) << run.err;
    expect_totals(run, 2);
    expect_steps(run, 6, 9);
    EXPECT_THAT(matches_of(R"((?:^|\n)(1)\simages/sec)", run.out), SizeIs(2)) << run.out;
    EXPECT_EQ(lines_with(run, "Batch size:  2 global"), 1U) << run.out;
  }
}

// In these modes one process of the original drives all others, and only that process prints.
TEST_F(OutputParsersOfRanks, FindOneTotalWhereOneProcessPrints) {
  const Finished run =
      run_ranks(2, short_run_with({"--variable_update=distributed_all_reduce",
                                   "--all_reduce_spec=xring", "--nomeasure_ceilings"}));
  ASSERT_EQ(run.status, 0) << run.err;
  expect_totals(run, 1);
  expect_steps(run, 3, 9);
}

}  // namespace
}  // namespace cnn::tests
