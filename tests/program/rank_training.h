#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/program/ranks.h"
#include "tests/program/tensors_file.h"

namespace cnn::tests {

// Fixture for tests that start several processes; it skips them on machines that cannot.
class SeveralProcesses : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_ranks(); !why.empty()) {
      GTEST_SKIP() << why;
    }
  }
};

// The result of a training of ResNet-20: four steps by momentum with learning rate 0.01.
struct RankTraining {
  Finished run;
  nlohmann::json result;
  std::string weights;  // the newest checkpoint, byte for byte

  std::set<std::string> hashes() const {  // distinct hashes of the ranks' weights
    std::set<std::string> found;
    for (const nlohmann::json& rank : result.at("ranks")) {
      found.insert(rank.at("weights_hash").get<std::string>());
    }
    return found;
  }
};

inline std::vector<std::string> rank_flags(const std::string& folder,
                                           const std::vector<std::string>& more) {
  std::vector<std::string> flags{"--data_name=cifar10",
                                 "--model=resnet20",
                                 "--batch_size=2",
                                 "--num_batches=3",
                                 "--num_warmup_batches=1",
                                 "--display_every=1",
                                 "--init_learning_rate=0.01",
                                 "--optimizer=momentum",
                                 "--nomeasure_ceilings",
                                 "--comm_calibrate=off",
                                 "--train_dir=" + folder + "/t",
                                 "--result_json=" + folder + "/r.json"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

// processes: 1 starts the program without mpirun.
inline Finished run_as(int processes, std::vector<std::string> flags) {
  if (processes > 1) {
    return run_ranks(processes, flags);
  }
  flags.insert(flags.begin(), "--device=cpu");
  return run_program(flags);
}

inline RankTraining train_as(int processes, const std::vector<std::string>& more) {
  const TemporaryFolder folder;
  RankTraining training{.run = run_as(processes, rank_flags(folder.path().string(), more)),
                        .result = {},
                        .weights = {}};
  EXPECT_EQ(training.run.status, 0) << training.run.err;
  training.result = nlohmann::json::parse(read_file(folder / "r.json"), nullptr, false);
  std::string newest = read_file(folder / "t/checkpoint");  // its first name in quotes
  newest.erase(0, newest.find('"') + 1);
  newest.resize(std::min(newest.find('"'), newest.size()));
  training.weights = read_file(folder / ("t/" + newest));
  EXPECT_FALSE(training.weights.empty()) << newest;
  return training;
}

// Writes a file for --data_name=tensors with random images of CIFAR-10's size and labels.
inline std::string write_examples(const TemporaryFolder& folder, int count) {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> pixel(-1, 1);
  std::vector<float> images(static_cast<std::size_t>(count) * cifar_pixels);
  std::ranges::generate(images, [&] { return pixel(random); });
  std::vector<std::int32_t> labels(static_cast<std::size_t>(count));
  std::ranges::generate(labels, [&] { return static_cast<std::int32_t>(random() % 10); });
  return write_tensors(folder, images, labels);
}

inline std::size_t lines_with(const Finished& run, const std::string& what) {
  std::size_t found = 0;
  for (const std::string& line : run.lines()) {
    found += line.find(what) != std::string::npos ? 1 : 0;
  }
  return found;
}

inline std::size_t times_in(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++found;
  }
  return found;
}

}  // namespace cnn::tests
