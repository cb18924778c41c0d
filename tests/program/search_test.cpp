#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

struct Searched {
  Finished run;
  json result;
};

Searched search(std::vector<std::string> words) {
  const TemporaryFolder folder;
  words.push_back("--result_json=" + (folder / "r.json"));
  Searched found{.run = run_program(words), .result = {}};
  found.result = json::parse(read_file(folder / "r.json"));
  return found;
}

TEST(Search, PrintsTheLargestBatchAndItsBytes) {
  const Searched found = search({"--simulate=p100-pcie3", "--model=resnet50", "--find_max_batch"});
  EXPECT_EQ(found.run.status, 0);
  EXPECT_EQ(found.run.out, "Largest batch_size: 208\n");
  EXPECT_THAT(found.run.err, HasSubstr("search: --batch_size=208 takes 15"));
  const json& section = found.result.at("search");
  EXPECT_EQ(section.at("flag"), "batch_size");
  EXPECT_EQ(section.at("step"), 1);
  EXPECT_EQ(section.at("lms"), false);
  EXPECT_EQ(section.at("largest"), 208);
  EXPECT_LE(section.at("bytes"), section.at("limit_bytes"));
  EXPECT_GT(section.at("further_bytes"), section.at("limit_bytes"));
  EXPECT_GT(section.at("seconds"), 0);
}

TEST(Search, NamesTheFlagOfTheBatchOfAnEvaluation) {
  const std::vector<std::string> words{"--simulate=p100-pcie3", "--model=resnet50", "--eval",
                                       "--find_max_batch"};
  EXPECT_THAT(search(words).run.out, StartsWith("Largest batch_size: "));
  std::vector<std::string> own = words;
  own.emplace_back("--eval_batch_size=4");
  const Searched found = search(own);
  EXPECT_THAT(found.run.out, StartsWith("Largest eval_batch_size: "));
  EXPECT_THAT(found.run.err, HasSubstr("search: --eval_batch_size="));
  EXPECT_EQ(found.result.at("search").at("flag"), "eval_batch_size");
  own.erase(own.begin() + 3);
  EXPECT_THAT(run_program(own).err, HasSubstr("the largest --eval_batch_size that fits is "));
}

// On the same device, a run with the found size succeeds and a run with the next size is refused.
TEST(Search, AgreesWithRunsOfACpuThatPlaysADevice) {
  const std::vector<std::string> words{"--device=cpu",
                                       "--model=resnet20",
                                       "--data_name=cifar10",
                                       "--device_memory_mb=40",
                                       "--num_batches=1",
                                       "--num_warmup_batches=0",
                                       "--measure_ceilings=false"};
  for (const bool lms : {false, true}) {
    std::vector<std::string> flags = words;
    if (lms) {
      flags.insert(flags.end(), {"--lms", "--lms_size_threshold=16"});
    }
    std::vector<std::string> request = flags;
    request.emplace_back("--find_max_batch");
    const Searched found = search(request);
    EXPECT_EQ(found.run.status, 0) << found.run.err;
    const int largest = found.result.at("search").at("largest");
    const auto status = [&](int batch) {
      std::vector<std::string> run = flags;
      run.push_back("--batch_size=" + std::to_string(batch));
      return run_program(run).status;
    };
    EXPECT_EQ(status(largest), 0) << largest;
    EXPECT_EQ(status(largest + 1), 3) << largest;
    flags.emplace_back("--batch_size=1000");
    EXPECT_THAT(run_program(flags).err, HasSubstr("the largest --batch_size that fits" +
                                                  std::string(lms ? " with --lms" : "") + " is " +
                                                  std::to_string(largest)));
  }
}

TEST(Search, TellsTheSameAsARunThatDoesNotFit) {
  const Finished run =
      run_program({"--simulate=p100-pcie3", "--model=resnet50", "--batch_size=500"});
  EXPECT_EQ(run.status, 3);
  EXPECT_THAT(run.err, HasSubstr("the largest --batch_size that fits is 208"));
}

TEST(Search, PrintsTheLargestImageInStepsOfSixteenPixels) {
  const Searched found = search(
      {"--simulate=p100-nvlink1", "--model=googlenet", "--batch_size=1", "--find_max_image_size"});
  EXPECT_EQ(found.run.status, 0);
  const int largest = found.result.at("search").at("largest");
  EXPECT_EQ(largest % 16, 0);
  EXPECT_EQ(found.run.out, "Largest image_size: " + std::to_string(largest) + "\n");
  const auto status = [](int pixels) {
    return run_program({"--simulate=p100-nvlink1", "--model=googlenet", "--batch_size=1",
                        "--image_size=" + std::to_string(pixels)})
        .status;
  };
  EXPECT_EQ(status(largest), 0);
  EXPECT_EQ(status(largest + 16), 3);
}

TEST(Search, FindsMoreWithLms) {
  const Searched batch =
      search({"--simulate=p100-pcie3", "--model=resnet50", "--lms", "--find_max_batch"});
  EXPECT_EQ(batch.run.status, 0);
  EXPECT_EQ(batch.result.at("search").at("lms"), true);
  EXPECT_GT(batch.result.at("search").at("largest"), 1000);
  const Searched image = search({"--simulate=p100-nvlink1", "--model=googlenet", "--batch_size=1",
                                 "--lms", "--find_max_image_size"});
  EXPECT_GT(image.result.at("search").at("largest"), 8192);
}

TEST(Search, SaysWhereNothingFits) {
  const Searched found =
      search({"--device=cpu", "--model=vgg16", "--device_memory_mb=100", "--find_max_batch"});
  EXPECT_EQ(found.run.status, 3);
  EXPECT_EQ(found.run.out, "");
  EXPECT_THAT(found.run.err, HasSubstr("search: no --batch_size of vgg16 fits in 100.0 MiB "
                                       "(--device_memory_mb); --lms needs less"));
  EXPECT_EQ(found.result.at("search").at("largest"), 0);
}

TEST(Search, NamesAnErrorOfEverySize) {
  const Finished run =
      run_program({"--device=cpu", "--model=trivial", "--find_max_batch", "--auxiliary_head"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("trivial has no auxiliary head"));
}

TEST(Search, IsForOneThingAtATime) {
  EXPECT_THAT(run_program({"--find_max_batch", "--find_max_image_size"}).err,
              HasSubstr("exclude each other"));
}

}  // namespace
}  // namespace cnn::tests
