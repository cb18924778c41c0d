#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/program/program.h"

namespace cnn::tests {

using Words = std::vector<std::string>;

// Returns flags of ResNet-20 at batch 64, which takes about 100 MiB. Without a warm-up, planning
// uses fixed costs.
inline Words lms_training(const Words& more) {
  Words words{"--device=cpu",      "--model=resnet20",         "--data_name=cifar10",
              "--batch_size=64",   "--num_batches=3",          "--num_warmup_batches=0",
              "--display_every=1", "--measure_ceilings=false", "--lms_size_threshold=16"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct LmsRun {
  Finished run;
  nlohmann::json result;
};

inline LmsRun lms_train(const Words& more) {
  const TemporaryFolder folder;
  Words words = lms_training(more);
  words.push_back("--result_json=" + (folder / "r.json"));
  LmsRun trained{.run = run_program(words), .result = {}};
  trained.result = nlohmann::json::parse(read_file(folder / "r.json"));
  return trained;
}

inline std::vector<double> losses(const nlohmann::json& result) {
  std::vector<double> all;
  for (const nlohmann::json& step : result.at("steps")) {
    all.push_back(step.at("total_loss").get<double>());
  }
  return all;
}

}  // namespace cnn::tests
