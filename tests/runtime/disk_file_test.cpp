#include "runtime/disk_file.h"

#include <algorithm>
#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <sys/resource.h>

#include "runtime/memory_plan.h"
#include "runtime/resource_limits.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace cnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using tests::error_of;
using tests::TemporaryFolder;

constexpr std::size_t unit = disk_alignment;

// Memory that direct I/O accepts.
template <std::size_t Units>
struct alignas(disk_alignment) Aligned {
  std::array<std::byte, Units * disk_alignment> bytes{};

  explicit Aligned(int seed = 0) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(static_cast<int>(i % 251) + seed);
    }
  }
};

class DiskFileIn : public testing::TestWithParam<bool> {
 protected:
  // A folder in memory, whose file system may refuse direct I/O, or one on a disk.
  std::filesystem::path folder() const {
    return GetParam() ? memory_.path() : std::filesystem::temp_directory_path();
  }

 private:
  TemporaryFolder memory_;
};

INSTANTIATE_TEST_SUITE_P(Folders, DiskFileIn, testing::Bool());

TEST_P(DiskFileIn, ReturnsWhatWasWritten) {
  DiskFile file(folder(), "disk");
  file.reserve(8 * unit);
  const Aligned<2> first(1);
  const Aligned<3> second(2);
  file.write(second.bytes, 4 * unit);
  file.write(first.bytes, 0);
  file.flush();
  Aligned<2> two;
  Aligned<3> three;
  file.read(two.bytes, 0);
  file.read(three.bytes, 4 * unit);
  EXPECT_EQ(two.bytes, first.bytes);
  EXPECT_EQ(three.bytes, second.bytes);
}

TEST_P(DiskFileIn, SaysWhenTheFileEndsTooEarly) {
  const DiskFile file(folder(), "--lms_disk=here");
  file.write(Aligned<2>(3).bytes, 0);
  Aligned<2> bytes;
  EXPECT_THAT(error_of([&] { file.read(bytes.bytes, unit); }),
              AllOf(HasSubstr("--lms_disk=here: cannot read 8192 bytes of its file cnn_lms_disk."),
                    HasSubstr("the file ends before them")));
}

TEST(DiskFile, HasNoNameOnceItIsOpen) {
  const TemporaryFolder folder;
  const DiskFile file(folder.path(), "disk");
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(DiskFile, NamesTheFolderThatIsMissing) {
  EXPECT_EQ(error_of([] { const DiskFile file("/nowhere", "--lms_disk=/nowhere"); }),
            "--lms_disk=/nowhere: cannot create a file in this folder: No such file or directory");
}

TEST(DiskFile, RefusesAFileThatIsNoFolder) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.write("file", "text");
  EXPECT_THAT(error_of([&] { const DiskFile file(path, "label"); }),
              HasSubstr("label: cannot create a file in this folder: Not a directory"));
}

// A limit of the size of files stands for a disk that is full.
TEST(DiskFile, SaysBeforeAndDuringAWriteThatThereIsNoRoom) {
  make_file_limit_an_error();
  const TemporaryFolder folder;
  DiskFile file(folder.path(), "--lms_disk=here");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = 4 * unit;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
  const std::string early = error_of([&] { file.reserve(8 * unit); });
  const std::string late = error_of([&] { file.write(Aligned<8>(4).bytes, 0); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(early, AllOf(HasSubstr("--lms_disk=here: cannot reserve 32768 bytes of its file"),
                           HasSubstr("File too large"), HasSubstr("ulimit -f")));
  EXPECT_THAT(late, AllOf(HasSubstr("--lms_disk=here: cannot write 32768 bytes of its file"),
                          HasSubstr("File too large")));
}

}  // namespace
}  // namespace cnn
