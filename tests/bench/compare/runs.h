#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/compare/run.h"

namespace cnn::compare {

using Runs = std::vector<Run>;  // inside a test, Run is a member of gtest's Test

// Returns the result file of a run whose steps took these seconds.
inline Json result_of(const std::vector<double>& seconds) {
  Json steps = Json::array();
  for (const double each : seconds) {
    steps.push_back({{"step", steps.size() + 1},
                     {"seconds", each},
                     {"images_per_sec", 16 / each},
                     {"loss", 7.5},
                     {"disturbed", false}});
  }
  static int count = 0;
  return {{"program", "cnn_benchmarks"},
          {"started", "2026-01-01T00:00:00." + std::to_string(100000 + ++count) + "Z"},
          {"config", {{"precision", "fp32"}, {"num_batches", 3}, {"fusion", "auto"}}},
          {"machine",
           {{"cpu", {{"name", "Some CPU"}, {"cores_used", 2}}},
            {"gpu", nullptr},
            {"host", "here"},
            {"libraries", {{"oneDNN", "3.2.0"}}}}},
          {"model", {{"name", "resnet20"}, {"trainable_parameters", 269787}}},
          {"plan", {{"precision", "f32"}, {"layout", "nhwc"}}},
          {"steps", steps}};
}

inline Run run_of(const Json& json, const std::string& path = "a.json") {
  return parse_run(path, json.dump());
}

// Draws runs of one program on a noisy machine. Each run has a speed of its own, and its steps
// scatter around that speed with autocorrelation.
class SyntheticRuns {
 public:
  struct Machine {
    double drift = 0.006;       // standard deviation of the runs' speeds
    double scatter = 0.01;      // standard deviation of the steps
    double memory = 0.3;        // correlation between consecutive steps
    double hogged = 0;          // share of runs during which another process takes cores
    bool hogs_are_seen = true;  // whether the run records these disturbances
  };
  SyntheticRuns(std::uint64_t seed, Machine machine) : random_(seed), machine_(machine) {}

  std::vector<Run> draw(std::size_t count, double seconds) {
    std::vector<Run> runs;
    for (std::size_t i = 0; i < count; ++i) {
      Run run{.path = "synthetic", .images_per_step = 16};
      run.identity = {{"model", "resnet20"}, {"images per step", "16"}};
      run.steps = steps(seconds);
      runs.push_back(std::move(run));
    }
    return runs;
  }

 private:
  std::vector<TimedStep> steps(double seconds) {
    constexpr int count = 60;
    constexpr double hog_slows = 0.6;
    const double speed = std::log(seconds) + machine_.drift * normal_(random_);
    const bool hogged = uniform_(random_) < machine_.hogged;
    std::vector<TimedStep> all;
    double noise = normal_(random_);
    for (int i = 0; i < count; ++i) {
      noise = machine_.memory * noise +
              std::sqrt(1 - machine_.memory * machine_.memory) * normal_(random_);
      const double hog = hogged ? hog_slows * uniform_(random_) : 0;
      all.push_back({.seconds = std::exp(speed + machine_.scatter * noise + hog),
                     .disturbed = hogged && machine_.hogs_are_seen});
    }
    return all;
  }

  std::mt19937_64 random_;
  Machine machine_;
  std::normal_distribution<double> normal_{};
  std::uniform_real_distribution<double> uniform_{};
};

}  // namespace cnn::compare
