// Tests ImageNet-style input as a user sees it: tf_cnn_benchmarks' own test on fake records, and
// damaged or lost files.
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "tests/program/program.h"
#include "tests/support/flat_jpeg.h"
#include "tests/support/image_records.h"

namespace cnn::tests {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr int black = 0, white = 255;
// The numbers of upstream's generator.
constexpr int training_images = 512, validation_images = 128;

// Writes records like upstream's generator: images of one grey value with random sides from 30 to
// 299 and label 0.
void write_shards(const TemporaryFolder& folder, const std::string& subset, int shards, int images,
                  int grey) {
  std::mt19937 random(static_cast<unsigned>(grey));
  for (int shard = 0; shard < shards; ++shard) {
    std::string file;
    for (int i = 0; i < images / shards; ++i) {
      const int height = 30 + static_cast<int>(random() % 270);
      const int width = 30 + static_cast<int>(random() % 270);
      file += ImageRecords::record(FlatJpeg::encode(height, width, grey), 0);
    }
    folder.write(subset + "-0000" + std::to_string(shard) + "-of-0000" + std::to_string(shards),
                 file);
  }
}

class FakeImageNet : public testing::Test {
 protected:
  void SetUp() override {
    const Finished without_files =
        run_program({"--device=cpu", "--data_name=imagenet", "--data_dir=/nonexistent"});
    if (without_files.err.find("built without libjpeg-turbo") != std::string::npos) {
      GTEST_SKIP() << "this build reads no images";
    }
    write_shards(records, "train", 8, training_images, black);
    write_shards(records, "validation", 2, validation_images, white);
  }

  // Returns the common parameters of upstream's tests.
  Words flags(const Words& more) const {
    Words flags{"--device=cpu",
                "--data_name=imagenet",
                "--data_dir=" + records.path().string(),
                "--model=trivial",
                "--batch_size=2",
                "--num_gpus=2",
                "--num_warmup_batches=5",
                "--display_every=1",
                "--init_learning_rate=0.005",
                "--weight_decay=0",
                "--print_training_accuracy",
                "--nodistort_color_in_yiq"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  static double loss_of(const std::string& step_line) {
    return std::stod(words_of(step_line).at(8));
  }
  static std::set<std::string> names_in(const std::filesystem::path& folder) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
  static Words lines_with(const Finished& run, const std::string& part) {
    Words found = run.lines();
    std::erase_if(found, [&](const std::string& line) { return line.find(part) == line.npos; });
    return found;
  }
  void trains_resumes_and_evaluates(const Words& more) const {
    const TemporaryFolder train_dir;
    Words common = flags(more);
    common.push_back("--train_dir=" + train_dir.path().string());
    const auto run = [&](const Words& last) {
      Words all = common;
      all.insert(all.end(), last.begin(), last.end());
      return run_program(all);
    };
    const Finished first = run({"--num_batches=20"});
    ASSERT_EQ(first.status, 0) << first.err;
    const Words lines = first.step_lines();
    ASSERT_EQ(lines.size(), 20U);
    for (const std::string& line : lines) {
      ASSERT_EQ(words_of(line).size(), 11U) << line;
      EXPECT_LE(loss_of(line), 100);
    }
    EXPECT_LE(loss_of(lines.back()), 10);
    EXPECT_EQ(words_of(lines.back()).at(9), "1.000");
    EXPECT_EQ(words_of(lines.back()).at(10), "1.000");
    const std::set<std::string> saved = names_in(train_dir.path());
    EXPECT_FALSE(saved.empty());

    const Finished second = run({"--num_batches=40"});
    ASSERT_EQ(second.step_lines().size(), 15U) << second.err;
    EXPECT_LE(loss_of(second.step_lines().front()), 1.01 * loss_of(lines.back()));
    EXPECT_NE(saved, names_in(train_dir.path())) << "no new checkpoint";

    // Like upstream, the evaluation classifies as many batches as the first run trained on.
    const Finished evaluation = run({"--num_batches=20", "--eval"});
    ASSERT_EQ(evaluation.status, 0) << evaluation.err;
    const Words accuracies = lines_with(evaluation, "Accuracy @ ");
    ASSERT_EQ(accuracies.size(), 1U) << evaluation.out;
    EXPECT_EQ(accuracies[0], "Accuracy @ 1 = 1.0000 Accuracy @ 5 = 1.0000 [80 examples]");
  }

  TemporaryFolder records;
};

TEST_F(FakeImageNet, TrainsResumesAndEvaluatesAsUpstreamAsserts) {
  trains_resumes_and_evaluates({"--distortions"});
}

TEST_F(FakeImageNet, TrainsResumesAndEvaluatesWithoutDistortions) {
  trains_resumes_and_evaluates({"--nodistortions"});
}

TEST_F(FakeImageNet, TrainsResumesAndEvaluatesWithVerboseSummaries) {
  trains_resumes_and_evaluates({"--nodistortions", "--summary_verbosity=2"});
}

TEST_F(FakeImageNet, TrainsResumesAndEvaluatesReplicatedTowers) {
  trains_resumes_and_evaluates({"--nodistortions", "--variable_update=replicated"});
}

TEST_F(FakeImageNet, HasTheSameLossesWithAnyNumberOfThreadsAndAfterAResume) {
  const auto losses = [&](const Words& more) {
    Words all = flags(more);
    all.push_back("--num_warmup_batches=0");
    Words found;
    for (const std::string& line : run_program(all).step_lines()) {
      found.push_back(words_of(line).at(8));
    }
    return found;
  };
  const Words one =
      losses({"--distortions", "--num_batches=6", "--datasets_num_private_threads=1"});
  ASSERT_EQ(one.size(), 6U);
  EXPECT_EQ(one, losses({"--distortions", "--num_batches=6", "--datasets_num_private_threads=4"}));
  const TemporaryFolder train_dir;
  const std::string dir = "--train_dir=" + train_dir.path().string();
  losses({"--distortions", "--num_batches=3", dir});
  EXPECT_EQ(losses({"--distortions", "--num_batches=6", dir}), Words(one.begin() + 3, one.end()));
}

TEST_F(FakeImageNet, SaysWhatItsInputDid) {
  const TemporaryFolder results;
  const std::string file = results / "r.json";
  const Finished run = run_program(flags({"--num_batches=5", "--result_json=" + file}));
  ASSERT_EQ(run.status, 0) << run.err;
  const auto result = nlohmann::json::parse(read_file(file));
  EXPECT_EQ(result["input"]["images"], 20);
  EXPECT_GT(result["input"]["bytes_read"], 1000);
  // An epoch has the 512 existing records, so 5 steps of 4 are 0.04 epochs.
  EXPECT_THAT(run.out, HasSubstr("Num epochs:  0.04"));
  EXPECT_THAT(run.out, HasSubstr("Dataset:     imagenet\n"));
}

TEST_F(FakeImageNet, IsMeasuredAloneByInputOnly) {
  const TemporaryFolder results;
  const std::string file = results / "r.json";
  const Finished run =
      run_program(flags({"--input_only", "--num_batches=10", "--result_json=" + file}));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("total images/sec: "));
  EXPECT_TRUE(run.step_lines().empty());
  EXPECT_THAT(run.err, AllOf(HasSubstr("for each second of a core"), HasSubstr("decode"),
                             HasSubstr("to read faster:")));
  const auto input = nlohmann::json::parse(read_file(file))["input"];
  EXPECT_EQ(input["images"], 40);
  EXPECT_GT(input["images_per_cpu_second"], 0);
  const double shares = input["read_share"].get<double>() + input["decode_share"].get<double>() +
                        input["resize_share"].get<double>() + input["idle_share"].get<double>();
  EXPECT_GE(shares, 0.999) << "work that began in the warm-up may add to the shares";
  EXPECT_THAT(run_program({"--input_only", "--device=cpu"}).err, HasSubstr("add --data_dir"));
}

TEST_F(FakeImageNet, ReadsFoldersOfImages) {
  const TemporaryFolder folder;
  for (const char* name : {"train/a/1.JPEG", "train/a/2.JPEG", "train/b/1.JPEG", "val/a/1.JPEG"}) {
    folder.write(name, FlatJpeg::encode(60, 50, black));
  }
  const Finished run = run_program({"--device=cpu", "--data_name=imagenet",
                                    "--data_dir=" + folder.path().string(), "--model=trivial",
                                    "--batch_size=2", "--num_epochs=2", "--num_warmup_batches=0"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Num batches: 3\n"));
}

TEST_F(FakeImageNet, EndsWithOneLineAtABrokenRecord) {
  const std::filesystem::path shard = records.path() / "train-00003-of-00008";
  std::string file = read_file(shard);
  file[file.size() / 2] = static_cast<char>(file[file.size() / 2] ^ 1);
  records.write(shard.filename().string(), file);
  const Words epoch = {"--num_epochs=1", "--num_warmup_batches=0"};
  const Finished run = run_program(flags(epoch));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("train-00003-of-00008: the record at byte"),
                             HasSubstr("--skip_broken_records")));
  Words skipping = flags(epoch);
  skipping.emplace_back("--skip_broken_records");
  const Finished skipped = run_program(skipping);
  EXPECT_EQ(skipped.status, 0) << skipped.err;
  EXPECT_THAT(skipped.err, ContainsRegex(" broken example(s were| was) left out"));
}

TEST_F(FakeImageNet, NamesWhatIsMissing) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "other");
  const Finished run =
      run_program({"--device=cpu", "--data_name=imagenet", "--data_dir=" + folder.path().string()});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr(folder.path().string()), HasSubstr("train-*-of-*")));
}

}  // namespace
}  // namespace cnn::tests
