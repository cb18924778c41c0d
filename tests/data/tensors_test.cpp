#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/catalog.h"
#include "data/feeder.h"
#include "tests/data/files.h"

namespace cnn::data {
namespace {

using testing::HasSubstr;

std::string loading_error(const std::string& header, const std::string& bytes, int classes = 1001) {
  const TemporaryFolder folder;
  const auto path = folder.write("a.safetensors", safetensors(header, bytes));
  return error_of([&] { open(find("tensors"), {.dir = path.string(), .classes = classes}); });
}

std::string pair(const std::string& images, const std::string& labels) {
  return R"({"images":{)" + images + R"(},"labels":{)" + labels + "}}";
}

const std::string one_image = R"("dtype":"F32","shape":[1,1,1,1],"data_offsets":[0,4])";
const std::string one_label = R"("dtype":"I32","shape":[1],"data_offsets":[4,8])";

TEST(Tensors, GivesImagesAsTheyAre) {
  const TemporaryFolder folder;
  const auto tensors = open(find("tensors"), {.dir = write_tensors(folder, 3).string()});
  EXPECT_EQ(tensors->size(), 3);
  EXPECT_EQ(tensors->format(), (ImageFormat{2, 1, 3, DataType::f32}));
  EXPECT_EQ(tensors->classes(), 1001);
  EXPECT_FALSE(tensors->may_shuffle());
  const ReadExample example = read_one(*tensors, 2);
  EXPECT_EQ(example.label, 2);
  float last = 0;
  std::memcpy(&last, example.image.data() + 20, 4);
  EXPECT_EQ(last, 17.0F);
}

TEST(Tensors, HaveTheClassesThatAreAskedFor) {
  const TemporaryFolder folder;
  const std::string path = write_tensors(folder, 3).string();
  EXPECT_EQ(open(find("tensors"), {.dir = path, .classes = 11})->classes(), 11);
}

TEST(Tensors, AreFedInFileOrderAndWrapWithinABatch) {
  const TemporaryFolder folder;
  const auto tensors = open(find("tensors"), {.dir = write_tensors(folder, 3).string()});
  Feeder feeder(*tensors, {.batch = 2, .order = Order::shuffled, .first_step = 1});
  EXPECT_THAT(feeder.next().labels, testing::ElementsAre(2, 0));
  EXPECT_THAT(feeder.next().labels, testing::ElementsAre(1, 2));
}

TEST(Tensors, RejectFilesOfAnotherContent) {
  const std::string value = little_endian(0x7FC00000, 4);  // NaN, which is an ordinary value here
  EXPECT_EQ(loading_error(pair(one_image, one_label), value + little_endian(7, 4)), "");
  EXPECT_THAT(loading_error("{}", ""), HasSubstr("no tensor 'images'"));
  EXPECT_THAT(loading_error(R"({"images":{)" + one_image + "}}", value),
              HasSubstr("no tensor 'labels'"));
  EXPECT_THAT(
      loading_error(pair(R"("dtype":"I32","shape":[1,1,1,1],"data_offsets":[0,4])", one_label),
                    value + value),
      HasSubstr("images must be F32 [N, H, W, C]"));
  EXPECT_THAT(
      loading_error(pair(R"("dtype":"F32","shape":[1,1,1],"data_offsets":[0,4])", one_label),
                    value + value),
      HasSubstr("images must be F32 [N, H, W, C]"));
  EXPECT_THAT(loading_error(pair(R"("dtype":"F32","shape":[0,1,1,1],"data_offsets":[0,0])",
                                 R"("dtype":"I32","shape":[0],"data_offsets":[0,0])"),
                            ""),
              HasSubstr("shape [0, 1, 1, 1]"));
  EXPECT_THAT(loading_error(pair(one_image, R"("dtype":"I32","shape":[2],"data_offsets":[4,12])"),
                            value + value + value),
              HasSubstr("labels must be I32 or I64 [1]"));
  EXPECT_THAT(loading_error(pair(one_image, R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"),
                            value + value),
              HasSubstr("labels must be I32 or I64 [1]"));
}

TEST(Tensors, RejectLabelsBeyondTheClasses) {
  EXPECT_THAT(
      loading_error(pair(one_image, one_label), std::string(4, 'x') + little_endian(10, 4), 10),
      HasSubstr("label 10 of image 0 is not in 0 to 9"));
  EXPECT_THAT(loading_error(pair(one_image, one_label), std::string(8, '\xff')),
              HasSubstr("label -1 of image 0"));
}

}  // namespace
}  // namespace cnn::data
