#include "bench/machine/disk_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::HasSubstr;

TEST(MeasureDisk, FindsSpeedAndRoomAndLeavesNothingBehind) {
  const tests::TemporaryFolder folder;
  const DiskSpeed disk = measure_disk(folder.path());
  EXPECT_EQ(disk.label, "--lms_disk=" + folder.path().string());
  EXPECT_EQ(disk.folder, folder.path());
  EXPECT_GT(disk.write_bytes_per_second, 1e6);
  EXPECT_GT(disk.read_bytes_per_second, 1e6);
  const std::size_t there = std::filesystem::space(folder.path()).available;
  EXPECT_GT(disk.free_bytes, there / 2);
  EXPECT_LT(disk.free_bytes, there);
  EXPECT_THAT(folder.names(), testing::IsEmpty());
}

TEST(MeasureDisk, NamesTheFlagWhereThereIsNoFolder) {
  EXPECT_EQ(tests::error_of([] { measure_disk("/nowhere"); }),
            "--lms_disk=/nowhere: cannot create a file in this folder: No such file or directory");
}

TEST(DiskSpeed, IsDividedByRunsThatShareTheDisk) {
  const DiskSpeed whole{.label = "disk",
                        .is_direct = true,
                        .free_bytes = 900,
                        .write_bytes_per_second = 30,
                        .read_bytes_per_second = 60};
  const DiskSpeed third = whole.shared_by(3);
  EXPECT_EQ(third.label, "disk");
  EXPECT_TRUE(third.is_direct);
  EXPECT_EQ(third.free_bytes, 300U);
  EXPECT_EQ(third.write_bytes_per_second, 10);
  EXPECT_EQ(third.read_bytes_per_second, 20);
}

TEST(DiskNote, SaysThatDirectIoIsRefused) {
  DiskSpeed disk{.label = "--lms_disk=/here", .is_direct = true};
  EXPECT_EQ(disk_note(disk), "");
  disk.is_direct = false;
  EXPECT_THAT(disk_note(disk),
              HasSubstr("--lms_disk=/here: this file system refuses direct I/O, so ordinary I/O"));
}

}  // namespace
}  // namespace cnn::bench
