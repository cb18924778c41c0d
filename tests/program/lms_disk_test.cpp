// Checks trainings whose host memory is short, with a disk behind it, and what goes wrong with a
// disk.
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "tests/program/lms_training.h"
#include "tests/program/rank_training.h"

namespace cnn::tests {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns flags of a device with little memory on a host that holds few of its tensors.
Words short_of_host_memory(const std::string& folder, const Words& more = {}) {
  Words words{"--lms",
              "--device_memory_mb=40",
              "--emulate_link_gbps=4",
              "--lms_host_limit=8",
              "--lms_recompute=off",
              "--lms_disk=" + folder};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Plans by a policy that does not search, which takes no time.
Words with_a_quick_plan(const std::string& folder, Words more = {}) {
  more.emplace_back("--lms_policy=vdnn_all");
  return short_of_host_memory(folder, more);
}

std::string checkpoint_of(const Words& more) {
  const TemporaryFolder folder;
  Words words = more;
  words.push_back("--train_dir=" + (folder / "t"));
  const Finished run = run_program(lms_training(words));
  EXPECT_EQ(run.status, 0) << run.err;
  return read_file(folder / "t/model.ckpt-3.safetensors");
}

TEST(LmsDisk, TrainsWhatNeitherDeviceNorHostHoldsWithTheSameLosses) {
  const TemporaryFolder folder;
  const LmsRun whole = lms_train({});
  const LmsRun less = lms_train(short_of_host_memory(folder.path().string(), {"--lms_verify"}));
  ASSERT_EQ(less.run.status, 0) << less.run.err;
  EXPECT_EQ(losses(less.result), losses(whole.result));
  const json& plan = less.result.at("plan").at("lms");
  const json& disk = plan.at("disk");
  EXPECT_GT(disk.at("swapped_tensors").get<int>(), 0);
  EXPECT_LE(disk.at("swapped_tensors").get<int>(), plan.at("swapped_tensors").get<int>());
  EXPECT_GE(disk.at("file_bytes").get<double>(), disk.at("swapped_out_bytes").get<double>());
  EXPECT_LE(less.result.at("plan").at("host_bytes").get<int>(), 8 << 20);
  EXPECT_LE(plan.at("lower_bound_seconds").get<double>(),
            plan.at("predicted_step_seconds").get<double>());
  EXPECT_THAT(less.run.err, AllOf(HasSubstr(" of the swapped tensors go on to the disk ("),
                                  HasSubstr("[LMS][0] measured disk: out ")));
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(LmsDisk, SavesTheCheckpointOfTheRunWithoutIt) {
  const TemporaryFolder folder;
  const std::string whole = checkpoint_of({});
  EXPECT_GT(whole.size(), 1000U);
  EXPECT_TRUE(checkpoint_of(short_of_host_memory(folder.path().string())) == whole);
  const std::string on_disk = std::filesystem::temp_directory_path().string();
  EXPECT_TRUE(checkpoint_of(with_a_quick_plan(on_disk)) == whole);
}

TEST(LmsDisk, RunsThePlanOfAFile) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  const std::string place = folder.path().string();
  const LmsRun made = lms_train(with_a_quick_plan(place, {"--lms_plan_out=" + plan}));
  EXPECT_THAT(read_file(plan), HasSubstr("\"store "));
  const LmsRun loaded = lms_train(short_of_host_memory(place, {"--lms_plan_file=" + plan}));
  ASSERT_EQ(loaded.run.status, 0) << loaded.run.err;
  EXPECT_EQ(losses(loaded.result), losses(made.result));
  const Finished without = run_program(lms_training(
      {"--lms", "--device_memory_mb=40", "--lms_host_limit=8", "--lms_plan_file=" + plan}));
  EXPECT_EQ(without.status, 3);
  EXPECT_THAT(without.err, HasSubstr("so it needs --lms_disk with a folder"));
}

TEST(LmsDisk, PlansAgainByMeasuredTimes) {
  const TemporaryFolder folder;
  const Words warm{"--num_warmup_batches=2"};
  const LmsRun whole = lms_train(warm);
  const LmsRun less = lms_train(with_a_quick_plan(folder.path().string(), warm));
  ASSERT_EQ(less.run.status, 0) << less.run.err;
  EXPECT_THAT(less.run.err, HasSubstr("planned again by measured times"));
  EXPECT_EQ(losses(less.result), losses(whole.result));
}

TEST(LmsDisk, NamesTheFlagOfAFolderThatIsNotThere) {
  const Finished run = run_program(lms_training(short_of_host_memory("/nowhere")));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("--lms_disk=/nowhere: cannot create a file in this folder: No "
                                 "such file or directory"));
  EXPECT_THAT(run.step_lines(), IsEmpty());
}

TEST(LmsDisk, NamesTheFlagOfAFolderThatItMayNotWrite) {
  const Finished run = run_program(lms_training(short_of_host_memory("/proc")));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("--lms_disk=/proc: cannot create a file in this folder: "));
}

// A limit of the size of files stands for a disk that is full.
TEST(LmsDisk, NamesFlagAndFileOfADiskThatIsFull) {
  const TemporaryFolder folder;
  Words words{"/bin/sh", "-c", "ulimit -f 1000; exec \"$@\"", "sh", CNN_PROGRAM};
  const Words flags = lms_training(short_of_host_memory(folder.path().string()));
  words.insert(words.end(), flags.begin(), flags.end());
  const Finished run = run_and(
      words, [](const Finished&) { return false; }, [] {});
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("--lms_disk=" + folder.path().string() + ": cannot write "),
                             HasSubstr(" of its file cnn_lms_disk."), HasSubstr("File too large")));
}

// The run measures the disk by at most eight reads at its start, which succeed.
TEST(LmsDisk, EndsWithTheErrorOfADiskThatCannotRead) {
  const TemporaryFolder folder;
  const std::string library =
      (std::filesystem::path(CNN_PROGRAM).parent_path() / "libcnn_watched_reads.so").string();
  const Environment preloaded("LD_PRELOAD", library.c_str());
  const Environment broken("READS_FAIL", "cnn_lms_disk.");
  const Environment later("READS_FAIL_AFTER", "8");
  const Finished run = run_program(lms_training(with_a_quick_plan(folder.path().string())));
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr(": cannot read "), HasSubstr(" of its file cnn_lms_disk."),
                             HasSubstr("Input/output error")));
  EXPECT_THAT(run.step_lines(), IsEmpty());
}

TEST(LmsDisk, HasNoEffectWithoutLmsOrMemoryOfItsOwn) {
  const Finished off = run_program(lms_training({"--lms_disk=/nowhere"}));
  EXPECT_EQ(off.status, 0) << off.err;
  EXPECT_THAT(off.err, HasSubstr("flags --lms_... act with --lms only"));
  const Finished one =
      run_program(lms_training({"--lms", "--lms_limit=60", "--lms_disk=/nowhere"}));
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_THAT(one.err, HasSubstr("--lms_disk acts behind a device with memory of its own"));
}

TEST(LmsDisk, ServesTwoDevicesOfOneProcess) {
  const TemporaryFolder folder;
  const Words two{"--num_gpus=2", "--variable_update=replicated", "--batch_size=16"};
  Words less = two;
  for (const char* flag :
       {"--lms", "--lms_policy=vdnn_all", "--device_memory_mb=20", "--lms_host_limit=4"}) {
    less.emplace_back(flag);
  }
  less.push_back("--lms_disk=" + folder.path().string());
  EXPECT_TRUE(checkpoint_of(less) == checkpoint_of(two));
  EXPECT_THAT(folder.names(), IsEmpty());
}

class SlowRanksWithLmsDisk : public SeveralProcesses {};

TEST_F(SlowRanksWithLmsDisk, HaveAFileEachAndTheBitsOfTheRunWithoutIt) {
  const TemporaryFolder folder;
  const Words small{"--variable_update=replicated", "--batch_size=16", "--lms_size_threshold=8"};
  const RankTraining whole = train_as(2, small);
  Words flags = small;
  for (const char* flag : {"--lms", "--device_memory_mb=12", "--emulate_link_gbps=4",
                           "--lms_host_limit=2", "--lms_recompute=off"}) {
    flags.emplace_back(flag);
  }
  flags.push_back("--lms_disk=" + folder.path().string());
  const RankTraining less = train_as(2, flags);
  EXPECT_GT(less.result.at("plan").at("lms").at("disk").at("swapped_tensors").get<int>(), 0);
  EXPECT_EQ(less.weights, whole.weights) << less.run.err;
  EXPECT_EQ(less.hashes(), whole.hashes());
  EXPECT_THAT(folder.names(), IsEmpty());
}

}  // namespace
}  // namespace cnn::tests
