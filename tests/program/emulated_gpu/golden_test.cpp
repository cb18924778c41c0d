// Compares the program on the emulated GPU with the reference values of tf_cnn_benchmarks in
// tests/golden.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "tests/program/emulated_gpu/emulated_program.h"
#include "tests/support/files.h"
#include "tests/support/formula.h"

namespace cnn::tests {
namespace {

using nlohmann::json;

// Collects the tensors of a safetensors file.
class TensorsFile {
 public:
  template <class Element>
  void add(const std::string& name, const std::string& type, const json& shape,
           std::span<const Element> values) {
    const std::size_t begin = data_.size();
    data_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    header_[name] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {begin, data_.size()}}};
  }
  void write(const std::string& path) const {
    std::string header = header_.dump();
    header.append((8 - header.size() % 8) % 8, ' ');
    const std::uint64_t length = header.size();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), sizeof(length));
    file << header << data_;
  }

 private:
  json header_;
  std::string data_;
};

void write_examples(const json& golden, const std::string& path) {
  const std::int64_t batch = golden.at("batch_size"), size = golden.at("image_size");
  const std::vector<float> images = formula_images(batch, size, golden.at("seed"));
  const auto labels = golden.at("labels").get<std::vector<std::int32_t>>();
  TensorsFile file;
  file.add("images", "F32", {batch, size, size, 3}, std::span(images));
  file.add("labels", "I32", {batch}, std::span(labels));
  file.write(path);
}

Shape shape_of(const json& dims) {
  const auto sizes = dims.get<std::vector<std::int64_t>>();
  switch (sizes.size()) {
    case 1:
      return {sizes[0]};
    case 2:
      return {sizes[0], sizes[1]};
    default:
      return {sizes.at(0), sizes.at(1), sizes.at(2), sizes.at(3)};
  }
}

void write_weights(const json& golden, const std::string& path) {
  TensorsFile file;
  for (const auto& [name, dims] : golden.at("variables").items()) {
    const std::vector<float> values = formula_variable(name, shape_of(dims), golden.at("seed"));
    file.add(name, "F32", dims, std::span(values));
  }
  const std::vector<std::int64_t> step{0};
  file.add("global_step", "I64", json::array(), std::span(step));
  file.write(path);
}

class EmulatedGpuGolden : public testing::TestWithParam<std::string> {};

TEST_P(EmulatedGpuGolden, LossesAreThoseOfTheOriginal) {
  const json golden =
      json::parse(read_file(CNN_SOURCE_DIR "/tests/golden/" + GetParam() + ".json"));
  const TemporaryFolder folder;
  write_examples(golden, folder / "examples.safetensors");
  write_weights(golden, folder / "model.ckpt-0.safetensors");
  const auto text = [&](const char* key) {
    const json& value = golden.at(key);
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  const auto expected = golden.at("base_loss").get<std::vector<double>>();
  const Training run = train(
      "gpu",
      {"--model=" + text("model"), "--data_name=tensors", "--nodropout",
       "--tensors_as=" + text("data_set"), "--data_dir=" + (folder / "examples.safetensors"),
       "--train_dir=" + folder.path().string(), "--batch_size=" + text("batch_size"),
       "--image_size=" + text("image_size"), "--optimizer=" + text("optimizer"),
       "--init_learning_rate=" + text("learning_rate"), "--weight_decay=" + text("weight_decay"),
       "--num_batches=" + std::to_string(expected.size())});
  ASSERT_EQ(run.base.size(), expected.size());
  // The reference of mobilenet is in float64. In step 1, float32 deviates by 1.9e-4 on the CPU and,
  // with this device's order of sums, by 2.1e-4; the tolerance is 2e-4.
  const double rounding = GetParam() == "mobilenet" ? 1.25 : 1;
  for (std::size_t step = 0; step < expected.size(); ++step) {
    const double allowed = rounding * golden.at("tolerance").at(step).get<double>() *
                           golden.at("total_loss").at(step).get<double>();
    EXPECT_NEAR(run.base[step], expected[step], allowed) << "step " << step;
  }
}

std::string file_name(const testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(Quick, EmulatedGpuGolden, testing::Values("lenet_sgd"), file_name);
INSTANTIATE_TEST_SUITE_P(Slow, EmulatedGpuGolden,
                         testing::Values("lenet_adam", "trivial_momentum", "alexnet_cifar",
                                         "resnet20_sgd", "resnet20_rmsprop", "resnet20_v2",
                                         "resnet56", "densenet40_k12", "mobilenet"),
                         file_name);

}  // namespace
}  // namespace cnn::tests
