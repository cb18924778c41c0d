// Runs that meet NaN say so, and where it came from; nothing turns it into a number.
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

// The checkpoint's header: names, shapes and places of tensors behind it.
nlohmann::json header_of(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  return nlohmann::json::parse(file.substr(sizeof(length), length));
}

// The same checkpoint, all values of this tensor NaN.
std::string with_nan(std::string file, const std::string& tensor) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  const nlohmann::json offsets = header_of(file).at(tensor).at("data_offsets");
  const std::size_t data = sizeof(length) + length;
  for (auto at = offsets[0].get<std::size_t>(); at < offsets[1].get<std::size_t>();
       at += sizeof(float)) {
    std::memcpy(file.data() + data + at, &not_a_number, sizeof(float));
  }
  return file;
}

std::string line_with(const std::string& text, const std::string& what) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) {
    return {};
  }
  const std::size_t begin = text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

TEST(NonFinite, InAnyVariableOfACheckpointIsEvaluatedAsWrongAndNamed) {
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

TEST(NonFinite, InTheImagesIsNamedInTrainingAndEvaluation) {
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
                        "is not finite is images (6144 of 6144 values); lower"),
              "")
        << run.err;
    const Finished evaluated = run_program(with(flags, {"--eval", "--num_eval_batches=1"}));
    EXPECT_EQ(evaluated.status, 0) << evaluated.err;
    EXPECT_NE(line_with(evaluated.out, "Accuracy @ 1 = 0.0000"), "") << evaluated.out;
    EXPECT_NE(line_with(evaluated.err, "is not finite is images ("), "") << evaluated.err;
  }
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

}  // namespace
}  // namespace cnn::tests
