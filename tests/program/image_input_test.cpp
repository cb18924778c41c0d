// Tests how a run reads ImageNet-style files: the records of each rank, slow disks and lost files.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "tests/program/image_shards.h"
#include "tests/program/rank_training.h"

namespace cnn::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Words = std::vector<std::string>;
using Records = std::vector<ShardRecord>;

// Returns the preloaded library that logs or delays the program's reads from shards.
std::string watched_reads() {
  return std::filesystem::path(CNN_PROGRAM).parent_path() / "libcnn_watched_reads.so";
}

// Skips under sanitizers, which must be loaded before any other library.
class LongImageInput : public SeveralProcesses {
 protected:
  void SetUp() override {
    SeveralProcesses::SetUp();
    const Finished without_files =
        run_program({"--device=cpu", "--data_name=imagenet", "--data_dir=/nonexistent"});
    if (without_files.err.find("built without libjpeg-turbo") != std::string::npos) {
      GTEST_SKIP() << "this build reads no images";
    }
  }

  // With one thread, examples are requested one after another.
  Words flags(const Words& more) const {
    Words flags{"--data_name=imagenet", "--data_dir=" + data.path().string(),
                "--model=trivial",      "--num_warmup_batches=0",
                "--display_every=1",    "--datasets_num_private_threads=1",
                "--nomeasure_ceilings", "--comm_calibrate=off"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  Finished run(int processes, const Words& more) const { return run_as(processes, flags(more)); }

  // Returns the first `count` records that each process reads, in its order. A process reads ahead
  // beyond the records of its training.
  std::vector<Records> reads_of(int processes, const Words& more, const Records& all,
                                std::size_t count) const {
    const TemporaryFolder folder;
    const std::string log = folder / "reads";
    const Environment preloaded("LD_PRELOAD", watched_reads().c_str());
    const Environment logged("READS_LOG", log.c_str());
    const Finished finished = run(processes, more);
    EXPECT_EQ(finished.status, 0) << finished.err;
    std::vector<Records> read(static_cast<std::size_t>(processes));
    std::istringstream lines(read_file(log));
    std::size_t rank = 0;
    for (ShardRecord one; lines >> rank >> one.shard >> one.offset >> one.bytes;) {
      // Only reads of whole records count, because building the index reads the headers.
      if (read.at(rank).size() < count && std::ranges::count(all, one) > 0) {
        read.at(rank).push_back(one);
      }
    }
    return read;
  }

  TemporaryFolder data;
};

std::set<ShardRecord> set_of(const Records& records, std::size_t from, std::size_t count) {
  return {records.begin() + static_cast<std::ptrdiff_t>(from),
          records.begin() + static_cast<std::ptrdiff_t>(from + count)};
}

// In every step, two ranks of batch 3 share the records that one process of batch 6 reads. Rank 0
// takes the first half and rank 1 the second.
TEST_F(LongImageInput, IsSharedByTwoRanksAsOneProcessOfTheirBatchReadsIt) {
  const Records all = write_grey_shards(data, {16, 8});
  constexpr std::size_t examples = 24, batch = 3, epochs = 2;
  const Words two_epochs{"--num_epochs=" + std::to_string(epochs), "--variable_update=horovod"};
  const auto with_batch = [&](std::size_t size) {
    Words words = two_epochs;
    words.push_back("--batch_size=" + std::to_string(size));
    return words;
  };
  const auto one = reads_of(1, with_batch(2 * batch), all, epochs * examples);
  const auto two = reads_of(2, with_batch(batch), all, epochs * examples / 2);
  ASSERT_EQ(one[0].size(), epochs * examples);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(two[rank].size(), epochs * examples / 2);
    for (std::size_t i = 0; i < two[rank].size(); ++i) {
      EXPECT_EQ(two[rank][i], one[0][(i / batch * 2 + rank) * batch + i % batch])
          << "rank " << rank << ", its example " << i;
    }
  }
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
    const std::size_t half = examples / 2;
    std::set<ShardRecord> both = set_of(two[0], epoch * half, half);
    const std::set<ShardRecord> other = set_of(two[1], epoch * half, half);
    EXPECT_EQ(both.size(), half) << "a record was read twice in epoch " << epoch;
    EXPECT_EQ(other.size(), half) << "a record was read twice in epoch " << epoch;
    both.insert(other.begin(), other.end());
    EXPECT_EQ(both.size(), examples) << "the ranks share records in epoch " << epoch;
  }
  EXPECT_NE(Records(one[0].begin(), one[0].begin() + examples),
            Records(one[0].begin() + examples, one[0].end()))
      << "both epochs have the same order";
}

TEST_F(LongImageInput, ReportsASlowDiskAsAWaitForInput) {
  write_grey_shards(data, {8});
  const TemporaryFolder results;
  const std::string file = results / "r.json";
  constexpr double batch_seconds = 4 * 0.15;  // the steps themselves take little time
  const Environment preloaded("LD_PRELOAD", watched_reads().c_str());
  const Environment delayed("READS_DELAY_MS", "150");
  const Finished slow =
      run(1, {"--batch_size=4", "--num_batches=6", "--image_size=64", "--result_json=" + file});
  ASSERT_EQ(slow.status, 0) << slow.err;
  EXPECT_THAT(slow.err,
              AllOf(HasSubstr("input: steps waited "), HasSubstr(" % of their time; without it"),
                    HasSubstr("reading takes most of the threads' time"),
                    HasSubstr("--datasets_num_private_threads")));
  const auto result = nlohmann::json::parse(read_file(file));
  const auto& input = result["input"];
  // The run reads two of the six batches ahead while it prepares the first step.
  EXPECT_GT(input["wait_seconds"], 2 * batch_seconds) << input;
  EXPECT_GT(input["wait_share"], 0.3) << input;
  EXPECT_GT(input["read_share"], 0.5) << input;
  EXPECT_LT(result["summary"]["images_per_sec"], 4 / batch_seconds * 1.6);
}

// Each read opens an image file of a folder, so a lost file is noticed. It must not count as a
// broken record, which a run may skip.
TEST_F(LongImageInput, NamesAnImageThatVanishesBetweenTwoEpochs) {
  for (const char* name : {"train/a/1.JPEG", "train/a/2.JPEG", "train/b/lost.JPEG"}) {
    data.write(name, FlatJpeg::encode(60, 50, 128));
  }
  const std::filesystem::path lost = data.path() / "train/b/lost.JPEG";
  Words words{CNN_PROGRAM, "--device=cpu"};
  for (const std::string& flag :
       flags({"--batch_size=3", "--num_batches=1000000", "--skip_broken_records"})) {
    words.push_back(flag);
  }
  const Finished run = run_and(
      words, [](const Finished& now) { return !now.step_lines().empty(); },
      [&] { std::filesystem::remove(lost); });
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr(lost.string()), HasSubstr("No such file")));
  EXPECT_FALSE(run.step_lines().empty());
}

TEST_F(LongImageInput, NamesAShardThatIsCutOffBetweenTwoEpochs) {
  write_grey_shards(data, {3, 3});
  const std::filesystem::path shard = data.path() / "train-00001-of-00002";
  Words words{CNN_PROGRAM, "--device=cpu"};
  for (const std::string& flag : flags({"--batch_size=6", "--num_batches=1000000"})) {
    words.push_back(flag);
  }
  const Finished run = run_and(
      words, [](const Finished& now) { return !now.step_lines().empty(); },
      [&] { std::filesystem::resize_file(shard, 100); });
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr(shard.string()), HasSubstr("it ends after 100 bytes")));
}

// POSIX keeps a deleted file readable for a process that has it open.
TEST_F(LongImageInput, StaysReadableWhereAnOpenShardIsDeleted) {
  write_grey_shards(data, {6});
  Words words{CNN_PROGRAM, "--device=cpu"};
  for (const std::string& flag : flags({"--batch_size=3", "--num_batches=20"})) {
    words.push_back(flag);
  }
  const Finished run = run_and(
      words, [](const Finished& now) { return now.step_lines().size() > 2; },
      [&] { std::filesystem::remove(data.path() / "train-00000-of-00001"); });
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.step_lines().size(), 20U);
}

class SlowImageInput : public LongImageInput {
 protected:
  // Writes ten shards of small images with about 40 MiB in total.
  void write_records(int count) const {
    std::vector<std::string> records;
    records.reserve(50);
    for (int kind = 0; kind < 50; ++kind) {
      records.push_back(ImageRecords::record(FlatJpeg::encode(40 + kind, 60, 5 * kind), 1 + kind));
    }
    for (int shard = 0; shard < 10; ++shard) {
      std::string file;
      for (int i = 0; i < count / 10; ++i) {
        file += records[static_cast<std::size_t>(i) % records.size()];
      }
      data.write("train-0000" + std::to_string(shard) + "-of-00010", file);
    }
  }

  // Returns the resident memory in MiB of the program that this test started, or 0 if none runs.
  static double resident_mib() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::error_code ignored;
      if (std::filesystem::read_symlink(entry.path() / "exe", ignored) != CNN_PROGRAM) {
        continue;
      }
      const Words status = words_of(read_file(entry.path() / "status"));
      const auto parent = std::ranges::find(status, "PPid:"),
                 resident = std::ranges::find(status, "VmRSS:");
      if (parent != status.end() && resident != status.end() &&
          *std::next(parent) == std::to_string(::getpid())) {
        return std::stod(*std::next(resident)) / 1024;
      }
    }
    return 0;
  }
};

TEST_F(SlowImageInput, NeedsNoMoreMemoryAtTheEndOfAHundredThousandRecords) {
  constexpr int records = 100'000, batch = 100, steps = records / batch, at_start = steps / 10;
  write_records(records);
  Words words{CNN_PROGRAM, "--device=cpu"};
  for (const std::string& flag :
       flags({"--batch_size=" + std::to_string(batch), "--num_epochs=1", "--image_size=64"})) {
    words.push_back(flag);
  }
  double start = 0, most = 0;
  const Finished run = run_and(
      words,
      [&](const Finished& now) {
        const double resident = resident_mib();
        const std::size_t done = now.step_lines().size();
        if (done < at_start) {
          start = std::max(start, resident);
        } else {
          most = std::max(most, resident);
        }
        return false;
      },
      [] {});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.step_lines().size(), static_cast<std::size_t>(steps));
  ASSERT_GT(start, 0);
  ASSERT_GT(most, 0);
  RecordProperty("resident_mib", std::to_string(start) + ", later " + std::to_string(most));
  EXPECT_LE(most, start + 8) << "MiB in the first tenth of the epoch: " << start;
}

}  // namespace
}  // namespace cnn::tests
