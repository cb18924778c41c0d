#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "models/catalog.h"

namespace cnn::models {
namespace {

using Json = nlohmann::json;

// Returns the curves that scripts/losses/record.py wrote, by file name.
std::map<std::string, Json> curves() {
  std::map<std::string, Json> found;
  for (const auto& entry : std::filesystem::directory_iterator(CNN_SOURCE_DIR "/tests/losses")) {
    std::ifstream file(entry.path());
    found.emplace(entry.path().filename().string(), Json::parse(file));
  }
  return found;
}

TEST(LossCurves, ExistOnceForEveryModelOfTheCatalogAndEveryPrecision) {
  using Served = std::tuple<std::string, std::string, std::string>;
  std::multiset<Served> recorded, wanted;
  for (const auto& [name, curve] : curves()) {
    for (const auto& [precision, tolerance] : curve["tolerance"].items()) {
      recorded.emplace(curve["data_set"], curve["model"], precision);
    }
  }
  for (const Model& model : all()) {
    for (const char* precision : {"fp32_strict", "tf32", "fp16", "bf16"}) {
      wanted.emplace(model.data_set, model.name, precision);
    }
  }
  EXPECT_THAT(recorded, testing::ContainerEq(wanted));
}

TEST(LossCurves, FallByMoreThanAPrecisionMayDeviate) {
  for (const auto& [name, curve] : curves()) {
    const auto losses = curve["base_loss"].get<std::vector<double>>();
    ASSERT_EQ(losses.size(), 20U) << name;
    EXPECT_TRUE(std::all_of(losses.begin(), losses.end(), [](double x) { return x > 0; })) << name;
    double fall = 0;  // the mean deviation of a loss that stays what it was at first
    for (const double loss : losses) {
      fall += std::abs(std::log(losses.front() / loss)) / 20;
    }
    for (const auto& [precision, tolerance] : curve["tolerance"].items()) {
      EXPECT_GT(tolerance.get<double>(), 0) << name;
      EXPECT_GT(fall, 1.5 * tolerance.get<double>()) << name << " at " << precision;
    }
  }
}

}  // namespace
}  // namespace cnn::models
