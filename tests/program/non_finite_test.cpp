// Checks that runs report NaN and its origin, and that no op turns it into a number.
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/program/program.h"
#include "tests/program/tensors_file.h"

namespace cnn::tests {
namespace {

using Words = std::vector<std::string>;

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

Words with(Words flags, const Words& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

Words mnist(const std::string& train_dir) {
  return {"--device=cpu",      "--data_name=mnist",    "--model=mnist_deep",
          "--batch_size=4",    "--num_batches=2",      "--num_warmup_batches=0",
          "--display_every=1", "--nomeasure_ceilings", "--train_dir=" + train_dir};
}

// Returns the checkpoint's header with the names, shapes and offsets of its tensors.
nlohmann::json header_of(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  return nlohmann::json::parse(file.substr(sizeof(length), length));
}

// Returns the checkpoint with this number in up to `most` first values of the tensor.
std::string with_values(std::string file, const std::string& tensor, float number,
                        std::size_t most) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  const nlohmann::json offsets = header_of(file).at(tensor).at("data_offsets");
  const std::size_t data = sizeof(length) + length;
  for (auto at = offsets[0].get<std::size_t>(); most > 0 && at < offsets[1].get<std::size_t>();
       at += sizeof(float)) {
    std::memcpy(file.data() + data + at, &number, sizeof(float));
    --most;
  }
  return file;
}

std::string with_nan(const std::string& file, const std::string& tensor) {
  return with_values(file, tensor, not_a_number, std::numeric_limits<std::size_t>::max());
}

std::string line_with(const std::string& text, const std::string& what) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) {
    return {};
  }
  const std::size_t begin = text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

TEST(NonFinite, IsNamedAndEvaluatedAsWrongInAnyVariableOfACheckpoint) {
  const TemporaryFolder folder;
  const Finished trained = run_program(mnist(folder / "t"));
  ASSERT_EQ(trained.status, 0) << trained.err;
  const std::string name = "t/model.ckpt-2.safetensors";
  const std::string checkpoint = read_file(folder / name);
  int variables = 0;
  const nlohmann::json header = header_of(checkpoint);
  for (const auto& [tensor, entry] : header.items()) {
    if (!tensor.starts_with("v/cg/") || tensor.ends_with("/Momentum")) {
      continue;
    }
    ++variables;
    folder.write(name, with_nan(checkpoint, tensor));
    const Finished run =
        run_program(with(mnist(folder / "t"), {"--eval", "--num_eval_batches=3",
                                               "--result_json=" + (folder / "r.json")}));
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_NE(line_with(run.out, "Accuracy @ 1 = 0.0000 Accuracy @ 5 = 0.0000"), "") << run.out;
    EXPECT_NE(line_with(run.err, tensor + " holds NaN or infinity ("), "") << run.err;
    const std::string line = line_with(run.err, "evaluation at global step 2, batch 1: ");
    EXPECT_NE(line.find("the loss is nan; the first tensor in memory that is not finite is " +
                        tensor + " ("),
              std::string::npos)
        << run.err;
    EXPECT_EQ(run.err.find("evaluation at"), run.err.rfind("evaluation at")) << run.err;
    const auto result = nlohmann::json::parse(read_file(folder / "r.json"));
    EXPECT_EQ(result["evaluation"][0]["top_1"], 0);
    EXPECT_TRUE(result["evaluation"][0]["base_loss"].is_null());
    EXPECT_TRUE(result["evaluation"][0]["non_finite"].get<std::string>().starts_with(tensor));
  }
  EXPECT_EQ(variables, 8);
}

TEST(NonFinite, IsNamedInTrainingAndEvaluationIfImagesHaveIt) {
  const TemporaryFolder folder;
  const std::vector<float> images(2 * static_cast<std::size_t>(cifar_pixels), not_a_number);
  const std::vector<std::int32_t> labels{0, 0};
  const std::string data = write_tensors(folder, images, labels);
  for (const std::string model : {"trivial", "alexnet"}) {
    const Words flags{
        "--device=cpu",           "--data_name=tensors",  "--tensors_as=cifar10",
        "--data_dir=" + data,     "--batch_size=2",       "--num_batches=2",
        "--display_every=1",      "--model=" + model,     "--print_training_accuracy",
        "--num_warmup_batches=0", "--nomeasure_ceilings", "--train_dir=" + (folder / model)};
    const Finished run = run_program(flags);
    EXPECT_EQ(run.status, 0) << run.err;
    ASSERT_EQ(run.step_lines().size(), 2U) << run.out;
    EXPECT_TRUE(run.step_lines()[0].ends_with("\tnan\t0.000\t0.000")) << run.out;
    EXPECT_NE(line_with(run.err,
                        "step 1 (global step 1): the loss is nan; the first tensor in memory that "
                        "is not finite is images (6144 of 6144 values); the same run with "
                        "--check_finite_step=1 looks at all of the step; lower"),
              "")
        << run.err;
    const Finished evaluated = run_program(with(flags, {"--eval", "--num_eval_batches=1"}));
    EXPECT_EQ(evaluated.status, 0) << evaluated.err;
    EXPECT_NE(line_with(evaluated.out, "Accuracy @ 1 = 0.0000"), "") << evaluated.out;
    EXPECT_NE(line_with(evaluated.err, "is not finite is images ("), "") << evaluated.err;
  }
}

TEST(NonFinite, IsNamedByForwardOnlyWhichHasNoLoss) {
  const TemporaryFolder folder;
  std::vector<float> images(2 * static_cast<std::size_t>(cifar_pixels), 1);
  const std::vector<std::int32_t> labels{0, 0};
  const auto run = [&] {
    const Finished run = run_program(
        {"--device=cpu", "--data_name=tensors", "--tensors_as=cifar10",
         "--data_dir=" + write_tensors(folder, images, labels), "--batch_size=2", "--num_batches=2",
         "--num_warmup_batches=0", "--display_every=1", "--model=alexnet", "--forward_only",
         "--nomeasure_ceilings", "--result_json=" + (folder / "r.json")});
    EXPECT_EQ(run.status, 0) << run.err;
    return std::pair(run, nlohmann::json::parse(read_file(folder / "r.json")));
  };
  EXPECT_FALSE(run().second.contains("non_finite"));
  images[0] = not_a_number;
  const auto [forward, result] = run();
  EXPECT_NE(line_with(forward.err,
                      "forward only, global step 2: the first tensor in memory that "
                      "is not finite is images (1 of 6144 values); examples whose "
                      "logits are not finite count as wrong"),
            "")
      << forward.err;
  EXPECT_EQ(result["non_finite"], "images (1 of 6144 values)");
}

TEST(NonFinite, LossOfATrainingNamesTheStepAndATensor) {
  const TemporaryFolder folder;
  const Finished run = run_program(
      with(mnist(folder / "t"), {"--num_batches=6", "--init_learning_rate=1e30", "--optimizer=sgd",
                                 "--result_json=" + (folder / "r.json")}));
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string line = line_with(run.err, "): the loss is ");
  EXPECT_TRUE(line.starts_with("step ")) << run.err;
  EXPECT_NE(line.find("the first tensor in memory that is not finite is "), std::string::npos)
      << run.err;
  EXPECT_TRUE(line.ends_with("; lower --init_learning_rate or set --gradient_clip")) << run.err;
  const auto diverged = nlohmann::json::parse(read_file(folder / "r.json")).at("diverged");
  EXPECT_TRUE(line.starts_with("step " + std::to_string(diverged["step"].get<int>()) + " "))
      << line;
  EXPECT_NE(line.find(diverged["tensor"].get<std::string>()), std::string::npos);
}

// Resumes from a checkpoint with this number in this variable and runs step 3.
Finished third_step(const std::string& variable, float number, std::size_t count,
                    const Words& more) {
  const TemporaryFolder folder;
  const Finished trained = run_program(mnist(folder / "t"));
  EXPECT_EQ(trained.status, 0) << trained.err;
  const std::string name = "t/model.ckpt-2.safetensors";
  folder.write(name, with_values(read_file(folder / name), variable, number, count));
  Finished run = run_program(
      with(with(mnist(folder / "t"), {"--num_batches=3", "--save_model_steps=1000"}), more));
  EXPECT_EQ(run.status, 0) << run.err;
  return run;
}

TEST(NonFinite, IsNamedInACheckedStepBeforeItsBytesAreGone) {
  const std::string kernel = "v/cg/conv1/conv2d/kernel";
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Finished unchecked = third_step(kernel, infinity, 1, {});
  EXPECT_NE(line_with(unchecked.err,
                      "; the same run with --check_finite_step=3 looks at all of "
                      "the step; lower"),
            "")
      << unchecked.err;
  const Finished checked = third_step(kernel, infinity, 1, {"--check_finite_step=3"});
  EXPECT_NE(line_with(checked.err, "the first tensor of the step that is not finite is " + kernel),
            "")
      << checked.err;
  // The weights are finite, but their products overflow.
  const Finished overflow = third_step(kernel, 3e38F, 100'000, {"--check_finite_step=3"});
  const std::string line = line_with(overflow.err, "the first tensor of the step that is not");
  EXPECT_NE(line.find("is the result of conv#"), std::string::npos) << overflow.err;
  EXPECT_NE(line.find(" with " + kernel), std::string::npos) << overflow.err;
}

TEST(NonFinite, IsLookedForInOneStepOfAHealthyTraining) {
  const auto run = [](const std::string& step) {
    const TemporaryFolder folder;
    return run_program(with(mnist(folder / "t"), {"--check_finite_step=" + step})).err;
  };
  const std::string checked = run("2");
  EXPECT_NE(line_with(checked, "global step 2: the loss is finite; so is every tensor of the step"),
            "")
      << checked;
  EXPECT_NE(line_with(run("9"), "--check_finite_step=9: the run did not come to this step"), "");
}

}  // namespace
}  // namespace cnn::tests
