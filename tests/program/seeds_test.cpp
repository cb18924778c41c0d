// Known speeds of other systems and of earlier plans, on simulated machines: speeds must not fall.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct Seed {
  Finished run;
  json lms;  // section of the result
  double images_per_sec = 0;

  // Returns the percentage of the speed without a limit of memory.
  double share() const {
    return 100 * lms.at("unlimited_step_seconds").get<double>() /
           lms.at("predicted_step_seconds").get<double>();
  }
};

Seed plan(std::vector<std::string> words) {
  const TemporaryFolder folder;
  words.insert(words.end(), {"--lms", "--result_json=" + (folder / "r.json")});
  Seed seed{.run = run_program(words), .lms = {}};
  const json result = json::parse(read_file(folder / "r.json"));
  if (seed.run.status == 0) {
    seed.lms = result.at("plan").at("lms");
    seed.images_per_sec = result.at("simulation").at("images_per_sec");
  }
  return seed;
}

// The batch makes the step need so many times the memory.
struct Point {
  int batch = 0;
  double over_subscription = 0, min_share = 0;
};

void expect_shares(const std::vector<std::string>& words, const std::vector<Point>& points) {
  for (const Point& point : points) {
    std::vector<std::string> flags = words;
    flags.push_back("--batch_size=" + std::to_string(point.batch));
    const Seed seed = plan(flags);
    ASSERT_EQ(seed.run.status, 0) << seed.run.err;
    const double need = seed.lms.at("need_bytes"), budget = seed.lms.at("budget_bytes");
    EXPECT_NEAR(need / budget, point.over_subscription, 0.02) << point.batch;
    EXPECT_GE(seed.share(), point.min_share) << point.batch;
    EXPECT_GE(seed.lms.at("predicted_step_seconds"), seed.lms.at("lower_bound_seconds"));
  }
}

const std::vector<std::string> resnet50_on_p100{"--simulate=p100-pcie3", "--model=resnet50"};

TEST(Seeds, ResNet50KeepsItsSpeedALittleBeyondTheMemoryOfAP100) {
  expect_shares(resnet50_on_p100, {{216, 1.03, 99.5}, {314, 1.5, 98}});
}

TEST(Seeds, ResNet50KeepsMostOfItsSpeedFarBeyondTheMemoryOfAP100) {
  expect_shares(resnet50_on_p100, {{420, 2, 96}, {630, 3, 93}, {841, 4, 90}});
}

// As far as plans get so near the floor.
TEST(SlowSeeds, ResNet50TrainsAtFiveTimesTheMemoryOfAP100) {
  expect_shares(resnet50_on_p100, {{1052, 5, 81}});
}

TEST(SlowSeeds, ResNet50InF16KeepsMostOfItsSpeedOnAnH200) {
  for (const auto& [limit, least] : {std::pair{4916, 91.0}, {3276, 84.0}, {2457, 77.5}}) {
    const Seed seed = plan({"--simulate=h200", "--model=resnet50", "--use_fp16", "--fusion=bn",
                            "--batch_size=256", "--lms_limit=" + std::to_string(limit)});
    ASSERT_EQ(seed.run.status, 0) << seed.run.err;
    EXPECT_GE(seed.share(), least) << limit;
  }
}

// TFLMS got 0.21 to 0.23 images a second; no plan can do more than the card's 0.53 to 0.55.
TEST(Seeds, GooglenetTrainsOnImagesOf8192Pixels) {
  const std::vector<std::string> words{"--simulate=p100-nvlink1", "--model=googlenet",
                                       "--batch_size=1", "--image_size=8192"};
  EXPECT_EQ(run_program(words).status, 3);
  const Seed seed = plan(words);
  EXPECT_EQ(seed.run.status, 0) << seed.run.err;
  EXPECT_GE(seed.images_per_sec, 0.50);
}

// A swap-in that is triggered earlier hides more, and takes memory until there is none.
TEST(Seeds, ALargerLowerBoundOfTflms1TakesMemoryUntilThereIsNone) {
  const auto with_lb = [](int lb) {
    return plan({"--simulate=p100-nvlink1", "--model=googlenet", "--batch_size=1",
                 "--image_size=8192", "--lms_policy=tflms1", "--lms_lb=" + std::to_string(lb)});
  };
  const Seed one = with_lb(1), three = with_lb(3), twenty = with_lb(20);
  EXPECT_GT(three.images_per_sec, one.images_per_sec);
  EXPECT_GT(three.lms.at("predicted_peak_bytes"), one.lms.at("predicted_peak_bytes"));
  EXPECT_EQ(twenty.run.status, 3);
  EXPECT_THAT(twenty.run.err, HasSubstr("OOM when allocating tensor with shape["));
}

// Swapping everything costs three quarters of the speed however little is missing: 23 % is left
// where computing waits for every copy, 25 % where swap-ins are triggered one node ahead, and two
// more here, since bytes that are leaving stay reserved until a step needs them.
TEST(Seeds, SwappingEverythingLeavesAQuarterOfTheSpeed) {
  for (const char* batch : {"--batch_size=216", "--batch_size=420"}) {
    std::vector<std::string> words = resnet50_on_p100;
    words.insert(words.end(), {batch, "--lms_policy=tflms1"});
    const double ahead = plan(words).share();
    words.emplace_back("--lms_sync_mode=3");
    const double waiting = plan(words).share();
    EXPECT_NEAR(ahead, 27, 2) << batch;
    EXPECT_NEAR(waiting, 23, 2) << batch;
    EXPECT_GT(ahead, waiting) << batch;
  }
}

// A batch that is refused without LMS loses nothing with it.
TEST(Seeds, TheFirstBatchThatIsRefusedRunsWithLms) {
  std::vector<std::string> words = resnet50_on_p100;
  words.emplace_back("--batch_size=210");
  EXPECT_EQ(run_program(words).status, 3);
  EXPECT_GE(plan(words).share(), 99);
}

// caffe-ibm ran out of a P100's memory at 24000 images without LMS, and did them with it.
TEST(Seeds, Cifar10FullTakesTheBatchThatCaffeRefusedWithoutLms) {
  const TemporaryFolder folder;
  const Finished run =
      run_program({"--simulate=p100-pcie3", "--data_name=cifar10", "--model=cifar10_full",
                   "--batch_size=24000", "--result_json=" + (folder / "r.json")});
  ASSERT_EQ(run.status, 0) << run.err;
  const json result = json::parse(read_file(folder / "r.json"));
  EXPECT_LT(result.at("plan").at("arena_bytes"), std::size_t{5} << 30U);
}

}  // namespace
}  // namespace cnn::tests
