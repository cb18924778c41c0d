// Repeats the two-device runs of tf_cnn_benchmarks' own tests: train, resume, evaluate.
#include <array>
#include <cstdint>
#include <gtest/gtest.h>
#include <ostream>
#include <string>
#include <vector>

#include "tests/program/program.h"
#include "tests/program/tensors_file.h"

namespace cnn::tests {
namespace {

using Words = std::vector<std::string>;

struct Case {
  std::string name;
  Words flags;
  int batches = 20;
  bool accuracies = true;
};

std::ostream& operator<<(std::ostream& out, const Case& test_case) { return out << test_case.name; }

// Writes a black image of class 0 and a white image of class 1, so that each is half of every
// batch.
std::string write_black_and_white(const TemporaryFolder& folder) {
  std::vector<float> images(cifar_pixels, -1.0F);
  images.insert(images.end(), cifar_pixels, 1.0F);
  return write_tensors(folder, images, std::array<std::int32_t, 2>{0, 1});
}

Words with(Words flags, const Words& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

Words on_two_devices(const std::string& examples, const std::string& train_dir) {
  return {"--device=cpu",
          "--data_name=tensors",
          "--tensors_as=cifar10",
          "--data_dir=" + examples,
          "--train_dir=" + train_dir,
          "--num_gpus=2",
          "--batch_size=2",
          "--display_every=1",
          "--model=trivial",
          "--init_learning_rate=0.005",
          "--weight_decay=0",
          "--num_warmup_batches=5",
          "--nomeasure_ceilings"};
}

struct StepLine {
  double loss = 0, top_1 = 0, top_5 = 0;
};

std::vector<StepLine> steps_of(const Finished& run, bool with_accuracies) {
  EXPECT_EQ(run.status, 0) << run.err;
  std::vector<StepLine> steps;
  for (const std::string& line : run.step_lines()) {
    const Words words = words_of(line);
    EXPECT_EQ(words.size(), with_accuracies ? 11U : 9U) << line;
    steps.push_back({.loss = std::stod(words.at(8))});
    if (with_accuracies) {
      steps.back().top_1 = std::stod(words.at(9));
      steps.back().top_5 = std::stod(words.at(10));
    }
  }
  return steps;
}

class SeveralDevices : public testing::TestWithParam<Case> {};

TEST_P(SeveralDevices, TrainGoOnAndEvaluate) {
  const Case& tried = GetParam();
  const TemporaryFolder folder;
  Words flags = with(on_two_devices(write_black_and_white(folder), folder / "t"), tried.flags);
  if (tried.accuracies) {
    flags.emplace_back("--print_training_accuracy");
  }
  const auto train = [&](int batches) {
    return run_program(with(flags, {"--num_batches=" + std::to_string(batches)}));
  };
  const Finished run = train(tried.batches);
  if (run.err.find("is not available on this machine") != std::string::npos) {
    GTEST_SKIP() << "this processor has no AVX-512, or this build no oneDNN";
  }
  const std::vector<StepLine> first = steps_of(run, tried.accuracies);
  ASSERT_EQ(first.size(), static_cast<std::size_t>(tried.batches));
  for (const StepLine& step : first) {
    EXPECT_LE(step.loss, 100);
  }
  EXPECT_LE(first.back().loss, 10);

  const std::vector<StepLine> second = steps_of(train(2 * tried.batches), tried.accuracies);
  // Without the warm-up steps.
  ASSERT_EQ(second.size(), static_cast<std::size_t>(tried.batches - 5));
  // With the rounding of the printed loss.
  EXPECT_LE(second.front().loss, 1.01 * first.back().loss + 0.0005);
  if (tried.accuracies) {
    EXPECT_EQ(second.back().top_1, 1);
    EXPECT_EQ(second.back().top_5, 1);
  }

  const Finished evaluated = run_program(with(flags, {"--eval", "--num_eval_batches=3"}));
  ASSERT_EQ(evaluated.status, 0) << evaluated.err;
  int lines = 0;
  for (const std::string& line : evaluated.lines()) {
    if (const Words words = words_of(line); line.starts_with("Accuracy @ 1")) {
      ++lines;
      ASSERT_EQ(words.size(), 12U) << line;
      EXPECT_EQ(words[4], "1.0000") << line;
      EXPECT_EQ(words[9], "1.0000") << line;
    }
  }
  EXPECT_EQ(lines, 1) << evaluated.out;
}

INSTANTIATE_TEST_SUITE_P(
    Upstream, SeveralDevices,
    testing::Values(Case{"parameter_server", {}}, Case{"no_accuracies", {}, 20, false},
                    Case{"alexnet", {"--model=alexnet", "--init_learning_rate=0.01"}, 30},
                    // This mode adds the gradients that the others average.
                    Case{"replicated",
                         {"--variable_update=replicated", "--init_learning_rate=0.0025"}},
                    Case{"independent", {"--variable_update=independent"}},
                    Case{"nhwc", {"--data_format=NHWC"}},
                    Case{"momentum", {"--optimizer=momentum", "--momentum=0.8"}},
                    Case{"rmsprop",
                         {"--optimizer=rmsprop", "--rmsprop_decay=0.8", "--rmsprop_momentum=0.6",
                          "--rmsprop_epsilon=0.7", "--init_learning_rate=0.01",
                          "--variable_update=replicated"}},
                    Case{"clipped", {"--gradient_clip=100"}},
                    Case{"decayed", {"--weight_decay=0.0001"}},
                    Case{"bf16", {"--precision=bf16", "--fp16_vars=false"}},
                    Case{"repacked",
                         {"--gradient_repacking=2", "--variable_update=replicated",
                          "--init_learning_rate=0.0025"}},
                    Case{"repacked_bf16",
                         {"--gradient_repacking=2", "--variable_update=replicated",
                          "--init_learning_rate=0.0025", "--precision=bf16"}}),
    [](const auto& tried) { return tried.param.name; });

// All ten examples have the same image, so only one prediction can be correct.
TEST(SeveralDevicesTogether, AreRightForOneOfTenLabelsOfOneImage) {
  const TemporaryFolder folder;
  std::vector<std::int32_t> labels(10);
  for (std::int32_t i = 0; i < 10; ++i) {
    labels[static_cast<std::size_t>(i)] = i;
  }
  const std::vector<float> images(10 * static_cast<std::size_t>(cifar_pixels), 0.25F);
  const Words flags =
      with(on_two_devices(write_tensors(folder, images, labels), folder / "t"),
           {"--model=alexnet", "--batch_size=5", "--num_batches=20", "--print_training_accuracy"});
  const std::vector<StepLine> steps = steps_of(run_program(flags), true);
  ASSERT_EQ(steps.size(), 20U);
  EXPECT_EQ(steps.back().top_1, 0.1);
  EXPECT_LE(steps.back().top_5, 0.5);  // one of the eleven classes has no example
}

TEST(SeveralDevicesTogether, PrintAccuraciesWithoutALossWhereOnlyForwardRuns) {
  const TemporaryFolder folder;
  const std::string examples = write_black_and_white(folder);
  for (const char* freeze : {"--nofreeze_when_forward_only", "--freeze_when_forward_only"}) {
    const Finished run = run_program({"--device=cpu", "--data_name=tensors", "--tensors_as=cifar10",
                                      "--data_dir=" + examples, "--num_gpus=2", "--batch_size=2",
                                      "--display_every=1", "--model=trivial", "--num_batches=20",
                                      "--forward_only", freeze, "--nomeasure_ceilings"});
    EXPECT_EQ(steps_of(run, true).size(), 20U) << freeze;
  }
}

TEST(SeveralDevicesTogether, EvaluateDuringTrainingAtTheStepsAskedFor) {
  const TemporaryFolder folder;
  const std::string examples = write_black_and_white(folder);
  for (const Words& when :
       {Words{"--eval_during_training_every_n_steps=2"},
        Words{"--eval_during_training_every_n_steps=2", "--variable_update=replicated"},
        // Four epochs have as many examples as two steps with the global batch of 4.
        Words{"--eval_during_training_every_n_epochs=4"},
        Words{"--eval_during_training_at_specified_steps=2,3,5,7,1000"},
        Words{"--eval_during_training_at_specified_epochs=4,6,10,14,2000"}}) {
    const TemporaryFolder trained;
    const Finished run =
        run_program(with(with(on_two_devices(examples, trained / "t"), when),
                         {"--num_batches=7", "--num_warmup_batches=0", "--num_eval_batches=2"}));
    ASSERT_EQ(run.status, 0) << run.err;
    int lines = 0;
    for (const std::string& line : run.lines()) {
      lines += line.ends_with(" examples/sec") ? 1 : 0;
    }
    EXPECT_EQ(lines, 8) << when.back() << "\n" << run.out;
  }
}

}  // namespace
}  // namespace cnn::tests
