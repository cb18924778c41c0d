#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/catalog.h"
#include "tests/data/files.h"

namespace cnn::data {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

const std::filesystem::path pickles = std::filesystem::path(CNN_SOURCE_DIR) / "tests/data/pickles";

// Returns a record of the binary format whose planes have the values 1, 2 and 3.
std::string record(int label) {
  return static_cast<char>(label) + std::string(1024, '\1') + std::string(1024, '\2') +
         std::string(1024, '\3');
}

std::unique_ptr<Dataset> open_test(const TemporaryFolder& folder) {
  return open(find("cifar10"), {.dir = folder.path().string(), .training = false});
}

std::string error_with(const std::string& name, const std::string& bytes) {
  const TemporaryFolder folder;
  folder.write(name, bytes);
  return error_of([&] { open_test(folder); });
}

TEST(Cifar10, InterleavesThePlanesOfBinaryRecords) {
  const TemporaryFolder folder;
  folder.write("test_batch.bin", record(4) + record(9));
  const auto cifar = open_test(folder);
  EXPECT_EQ(cifar->size(), 2);
  EXPECT_EQ(cifar->format(), (ImageFormat{32, 32, 3, DataType::u8}));
  EXPECT_EQ(cifar->classes(), 11);
  const ReadExample example = read_one(*cifar, 1);
  EXPECT_EQ(example.label, 9);
  for (std::size_t i = 0; i < example.image.size(); ++i) {
    ASSERT_EQ(example.image[i], i % 3 + 1) << i;
  }
}

TEST(Cifar10, JoinsTheTrainingFilesInTheirOrder) {
  const TemporaryFolder folder;
  for (int i = 1; i <= 5; ++i) {
    folder.write("data_batch_" + std::to_string(i) + ".bin", record(i));
  }
  const auto cifar = open(find("cifar10"), {.dir = folder.path().string()});
  ASSERT_EQ(cifar->size(), 5);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(read_one(*cifar, i).label, i + 1);
  }
}

TEST(Cifar10, NamesAFileThatIsMissingBetweenOthers) {
  const TemporaryFolder folder;
  folder.write("data_batch_1.bin", record(1));
  folder.write("data_batch_3.bin", record(3));
  EXPECT_THAT(error_of([&] { open(find("cifar10"), {.dir = folder.path().string()}); }),
              AllOf(HasSubstr("data_batch_2"), HasSubstr(folder.path().string())));
  EXPECT_THAT(error_of([&] { open_test(folder); }), HasSubstr("no file test_batch or"));
}

TEST(Cifar10, SaysWhereTheUnpackedFilesAre) {
  const TemporaryFolder folder;
  folder.write("cifar-10-python.tar.gz", "packed");
  EXPECT_THAT(error_of([&] {
                open(find("cifar10"), {.dir = (folder.path() / "cifar-10-python.tar.gz").string()});
              }),
              HasSubstr("which is a file; unpack it"));
  std::filesystem::create_directory(folder.path() / "cifar-10-batches-py");
  EXPECT_THAT(error_of([&] { open_test(folder); }),
              HasSubstr("use --data_dir=" + (folder.path() / "cifar-10-batches-py").string()));
}

// numpy 1.16 on Python 2.7, numpy 1.26 and numpy 2 wrote the files. Pixel i is 33 + 7 i mod 90,
// except that the first eight are those below. The labels are 3 and 9, or 1 and 2 in the file in
// Fortran order.
class Cifar10Pickle : public testing::TestWithParam<const char*> {};

TEST_P(Cifar10Pickle, IsReadAsPythonMeantIt) {
  const TemporaryFolder folder;
  const std::string name = GetParam();
  folder.write("test_batch", read_file(pickles / name));
  const auto cifar = open_test(folder);
  ASSERT_EQ(cifar->size(), 2);
  const bool fortran = name == "numpy1_fortran.pickle";
  constexpr std::array<int, 8> first{0, 255, 10, 92, 39, 13, 128, 34};
  for (std::size_t example = 0; example < 2; ++example) {
    const ReadExample read = read_one(*cifar, static_cast<std::int64_t>(example));
    EXPECT_EQ(read.label, fortran ? example + 1 : (example == 0 ? 3 : 9));
    for (std::size_t i = 0; i < 3072; ++i) {
      const std::size_t stored = i % 3 * 1024 + i / 3;  // the file stores planes
      const std::size_t formula = 33 + (example * 3072 + stored) * 7 % 90;
      const bool special = example == 0 && stored < first.size();
      ASSERT_EQ(read.image[i], special ? static_cast<std::size_t>(first.at(stored)) : formula);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllWriters, Cifar10Pickle,
                         testing::Values("python2_protocol2.pickle", "numpy1_protocol5.pickle",
                                         "numpy1_fortran.pickle", "numpy2_protocol2.pickle",
                                         "numpy2_protocol3.pickle", "numpy2_protocol4.pickle",
                                         "numpy2_protocol5.pickle"),
                         [](const auto& writer) {
                           const std::string name = writer.param;
                           return name.substr(0, name.find('.'));
                         });

// Returns {'data': <bytes>, 'labels': [label]} as a pickle of protocol 3.
std::string pickle_of(const std::string& data, int label) {
  return "\x80\x03}(X" + little_endian(4, 4) + "dataB" + little_endian(data.size(), 4) + data +
         "X" + little_endian(6, 4) + "labels](K" + std::string(1, static_cast<char>(label)) + "eu.";
}

TEST(Cifar10, ReadsAPickleWhoseDataIsPlainBytes) {
  const TemporaryFolder folder;
  folder.write("test_batch", pickle_of(std::string(3072, 'a'), 7));
  const auto cifar = open_test(folder);
  EXPECT_EQ(cifar->size(), 1);
  EXPECT_EQ(read_one(*cifar, 0).label, 7);
  EXPECT_THAT(read_one(*cifar, 0).image, Each('a'));
}

TEST(Cifar10, RejectsDamagedBinaryFiles) {
  EXPECT_THAT(error_with("test_batch.bin", ""), HasSubstr("not whole records"));
  EXPECT_THAT(error_with("test_batch.bin", record(1) + "x"), HasSubstr("3074 bytes"));
  EXPECT_THAT(error_with("test_batch.bin", record(10)), HasSubstr("label 10 is none of 0 to 9"));
}

TEST(Cifar10, RejectsPicklesOfAnotherContent) {
  EXPECT_THAT(error_with("test_batch", ""), HasSubstr("cut off"));
  EXPECT_THAT(error_with("test_batch", "N."), HasSubstr("no dictionary with the key 'data'"));
  EXPECT_THAT(error_with("test_batch", pickle_of("", 1)), HasSubstr("no images"));
  EXPECT_THAT(error_with("test_batch", pickle_of(std::string(3071, 'a'), 1)),
              HasSubstr("neither an array nor bytes of whole images"));
  EXPECT_THAT(error_with("test_batch", pickle_of(std::string(6144, 'a'), 1)),
              HasSubstr("2 images but 1 labels"));
  EXPECT_THAT(error_with("test_batch", pickle_of(std::string(3072, 'a'), 10)),
              HasSubstr("label 10 is none of 0 to 9"));
}

TEST(Cifar10, RejectsArraysOfAnotherType) {
  std::string other = read_file(pickles / "numpy2_protocol4.pickle");
  other.replace(other.find("u1"), 2, "i1");
  EXPECT_THAT(error_with("test_batch", other), HasSubstr("no array of unsigned bytes, N x 3072"));
}

TEST(Cifar10, SaysWhichFileIsWrong) {
  EXPECT_THAT(error_with("test_batch", "cos\nsystem\n."),
              AllOf(HasSubstr("test_batch"), HasSubstr("os.system")));
}

}  // namespace
}  // namespace cnn::data
