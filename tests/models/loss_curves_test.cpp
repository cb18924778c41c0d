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
#include <string_view>
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

// Returns the network whose recorded curve also stands for this one, because it has the same kind
// of cells or blocks but fewer of them. Returns null for a network with a curve of its own.
const Model* stand_in(const Model& model) {
  static const std::map<std::string_view, std::string_view> table{
      {"nasnetlarge", "nasnet"},
      {"official_resnet34", "official_resnet18"},
      {"official_resnet101", "official_resnet50"},
      {"official_resnet152", "official_resnet50"},
      {"official_resnet200", "official_resnet50"},
      {"official_resnet34_v2", "official_resnet18_v2"},
      {"official_resnet101_v2", "official_resnet50_v2"},
      {"official_resnet152_v2", "official_resnet50_v2"},
      {"official_resnet200_v2", "official_resnet50_v2"}};
  if (model.data_set == "cifar10" && model.name == "nasnet") {
    return &find("imagenet", "nasnet");
  }
  const auto found = table.find(model.name);
  return found == table.end() ? nullptr : &find(model.data_set, found->second);
}

TEST(LossCurves, RepresentDeeperNetworksByShallowOnes) {
  int deeper = 0;
  for (const Model& model : all()) {
    if (const Model* other = stand_in(model); other != nullptr) {
      ++deeper;
      EXPECT_EQ(stand_in(*other), nullptr) << model.name;
      EXPECT_EQ(other->rate.rule, model.rate.rule) << model.name;
    }
  }
  EXPECT_EQ(deeper, 10);
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
    if (stand_in(model) != nullptr) {
      continue;
    }
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
    double fall = 0;  // the mean deviation of a loss that keeps its first value
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
