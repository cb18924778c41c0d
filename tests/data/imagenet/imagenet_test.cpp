#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/catalog.h"
#include "data/feeder.h"
#include "data/records/image_example.h"
#include "data/records/record.h"
#include "tests/data/files.h"
#include "tests/data/images/encode.h"
#include "tests/support/flat_jpeg.h"

namespace cnn::data {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using tests::FlatJpeg;

std::vector<std::byte> record_of(const std::string& image, std::int64_t label) {
  return image_example_record({.encoded = std::as_bytes(std::span(image)),
                               .label = label,
                               .boxes = {{0.1F, 0.1F, 0.9F, 0.9F}}});
}

std::string image_shard_of(const std::vector<std::vector<std::byte>>& records) {
  std::vector<std::byte> file;
  for (const auto& record : records) {
    append_record(file, record);
  }
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

struct FloatExample {
  std::vector<float> image;
  std::int32_t label = 0;
};

FloatExample example_at(const Dataset& dataset, std::int64_t index, const Place& place) {
  FloatExample example;
  example.image.resize(dataset.format().bytes() / sizeof(float));
  dataset.read_for(index, place,
                   {std::as_writable_bytes(std::span(example.image)), &example.label});
  return example;
}

// Fixture with eight training images in two shards and two evaluation images.
class ImageNetRecords : public testing::Test {
 protected:
  void SetUp() override {
    for (int shard = 0; shard < 2; ++shard) {
      std::vector<std::vector<std::byte>> records;
      for (int i = 0; i < 4; ++i) {
        const int number = 4 * shard + i;
        records.push_back(record_of(
            jpeg_of(60 + number, 90 - number, JpegKind::subsampled, gradient), 100 + number));
      }
      folder.write("train-0000" + std::to_string(shard) + "-of-00002", image_shard_of(records));
    }
    folder.write("validation-00000-of-00001",
                 image_shard_of({record_of(FlatJpeg::encode(50, 70, 255), 1),
                                 record_of(png_of(70, 50, [](int, int, int) { return 0; }), 2)}));
  }
  Options options(bool training = true) const {
    return {.dir = folder.path().string(), .training = training, .images = {.side = 32, .seed = 9}};
  }
  std::unique_ptr<Dataset> opened(const Options& options) const {
    return open(find("imagenet"), options);
  }

  TemporaryFolder folder;
};

TEST_F(ImageNetRecords, HaveAnExampleForEachRecord) {
  const auto dataset = opened(options());
  EXPECT_EQ(dataset->size(), 8);
  EXPECT_EQ(dataset->format(), (ImageFormat{32, 32, 3, DataType::f32}));
  EXPECT_EQ(dataset->classes(), 1001);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(example_at(*dataset, i, {}).label, 100 + i);
  }
  EXPECT_EQ(opened(options(false))->size(), 2);
}

TEST_F(ImageNetRecords, AreBetweenMinusOneAndOne) {
  const auto evaluation = opened(options(false));
  EXPECT_THAT(example_at(*evaluation, 0, {}).image, Each(FloatNear(1, 1e-4F)));
  EXPECT_THAT(example_at(*evaluation, 1, {}).image, Each(FloatNear(-1, 1e-4F)));
}

TEST_F(ImageNetRecords, HaveChannelMeansSubtractedForMlPerf) {
  Options ml_perf = options(false);
  ml_perf.images.ml_perf = true;
  const std::vector<float> image = example_at(*opened(ml_perf), 0, {}).image;
  EXPECT_NEAR(image[0], 255 - 123.68, 1e-3);
  EXPECT_NEAR(image[1], 255 - 116.78, 1e-3);
  EXPECT_NEAR(image[2], 255 - 103.94, 1e-3);
}

TEST_F(ImageNetRecords, DependOnSeedAndPositionOnly) {
  for (const bool distortions : {false, true}) {
    Options first = options();
    first.images.distortions = distortions;
    const auto dataset = opened(first), again = opened(first);
    const Place place{.position = 17, .in_batch = 1};
    const std::vector<float> image = example_at(*dataset, 3, place).image;
    EXPECT_EQ(image, example_at(*again, 3, place).image);
    EXPECT_NE(image, example_at(*dataset, 3, {.position = 18, .in_batch = 1}).image);
    first.images.seed = 10;
    EXPECT_NE(image, example_at(*opened(first), 3, place).image);
  }
}

TEST_F(ImageNetRecords, AreResizedByTheMethodOfTheirPlaceInTheBatch) {
  Options turns = options(false);
  turns.images.resize = ResizeChoice::round_robin;
  const auto dataset = opened(turns);
  for (int place = 0; place < 8; ++place) {
    Options one = options(false);
    one.images.resize = static_cast<ResizeChoice>(place % 4);
    EXPECT_EQ(example_at(*dataset, 0, {.in_batch = place}).image,
              example_at(*opened(one), 0, {}).image);
  }
}

TEST_F(ImageNetRecords, AreAlmostTheSameWithoutFusedDecodeAndCrop) {
  Options whole = options();
  whole.images.decode_crop_only = false;
  const auto fused = opened(options()), decoded = opened(whole);
  for (int i = 0; i < 8; ++i) {
    const auto a = example_at(*fused, i, {.position = i}).image;
    const auto b = example_at(*decoded, i, {.position = i}).image;
    EXPECT_THAT(a, testing::Pointwise(FloatNear(0.12F), b)) << "chroma differs at the crop's edge";
  }
}

TEST_F(ImageNetRecords, AreTheSameBatchesWithAnyNumberOfThreads) {
  const auto dataset = opened(options());
  const auto batches = [&](int threads, std::int64_t first_step, int steps) {
    Feeder feeder(*dataset, {.batch = 3, .threads = threads, .seed = 9, .first_step = first_step});
    std::vector<std::byte> all;
    for (int step = 0; step < steps; ++step) {
      const Batch& batch = feeder.next();
      all.insert(all.end(), batch.images.begin(), batch.images.end());
    }
    return all;
  };
  const std::vector<std::byte> one = batches(1, 0, 6);
  EXPECT_EQ(one, batches(5, 0, 6));
  const std::vector<std::byte> resumed = batches(2, 4, 2);
  EXPECT_TRUE(
      std::equal(resumed.begin(), resumed.end(), one.end() - std::ptrdiff_t(resumed.size())));
}

TEST_F(ImageNetRecords, CanBeKeptInMemoryAndRepeated) {
  Options cache = options();
  cache.images.cache = true;
  const auto dataset = opened(cache);
  const auto before = example_at(*dataset, 5, {}).image;
  std::filesystem::remove(folder.path() / "train-00001-of-00002");
  EXPECT_EQ(example_at(*dataset, 5, {}).image, before);
  Options repeat = options();
  repeat.repeat_first = true;
  const auto repeated = opened(repeat);
  EXPECT_EQ(example_at(*repeated, 3, {}).label, 100);
  EXPECT_NE(example_at(*repeated, 3, {.position = 1}).image,
            example_at(*repeated, 3, {.position = 2}).image);
}

TEST_F(ImageNetRecords, NameALostFile) {
  const auto dataset = opened(options());
  std::filesystem::remove(folder.path() / "train-00000-of-00002");
  EXPECT_THAT(error_of([&] { example_at(*dataset, 0, {}); }),
              AllOf(HasSubstr("cannot open"), HasSubstr("train-00000-of-00002")));
  Options skipping = options();
  skipping.images.skip_broken = true;
  const auto other = opened(skipping);
  std::filesystem::remove(folder.path() / "train-00001-of-00002");
  EXPECT_THAT(error_of([&] { example_at(*other, 0, {}); }), HasSubstr("train-00001-of-00002"))
      << "a lost file is no broken record";
}

TEST_F(ImageNetRecords, NameABrokenRecordOrLeaveItOut) {
  const std::string good = image_shard_of({record_of(FlatJpeg::encode(20, 20, 9), 1)});
  std::string flipped = good;
  flipped[60] ^= 1;
  const std::string bad_image =
      image_shard_of({record_of("\xFF\xD8\xFF"
                                "nonsense",
                                1)});
  const std::string bad_label = image_shard_of({record_of(FlatJpeg::encode(20, 20, 9), 1001)});
  for (const auto& [broken, says] :
       {std::pair{flipped, "checksum"}, {bad_image, "JPEG"}, {bad_label, "label 1001"}}) {
    folder.write("train-00000-of-00002", broken);
    const auto refusing = opened(options());
    EXPECT_THAT(error_of([&] { example_at(*refusing, 0, {}); }),
                AllOf(HasSubstr("train-00000-of-00002: the record at byte 0 is broken"),
                      HasSubstr(says), HasSubstr("--skip_broken_records")));
    EXPECT_EQ(refusing->statistics().skipped, 0) << "the run ends with it";
    Options skipping = options();
    skipping.images.skip_broken = true;
    const auto dataset = opened(skipping);
    EXPECT_EQ(example_at(*dataset, 0, {}).label, 104) << "the first of the next shard";
    EXPECT_EQ(dataset->statistics().skipped, 1);
  }
}

TEST_F(ImageNetRecords, EndWithTheProblemWhereAllAreBroken) {
  const std::string bad = image_shard_of({record_of("GIF89a", 1), record_of("GIF89a", 2)});
  folder.write("train-00000-of-00002", bad);
  folder.write("train-00001-of-00002", bad);
  Options skipping = options();
  skipping.images.skip_broken = true;
  const auto dataset = opened(skipping);
  EXPECT_THAT(error_of([&] { example_at(*dataset, 2, {}); }),
              AllOf(HasSubstr("4 examples in a row are broken"), HasSubstr("the record at byte"),
                    HasSubstr("neither a JPEG nor a PNG file")));
  EXPECT_EQ(dataset->statistics().skipped, 4);
}

TEST_F(ImageNetRecords, CountWhatTheyRead) {
  const auto dataset = opened(options());
  example_at(*dataset, 0, {});
  example_at(*dataset, 1, {});
  const InputStatistics statistics = dataset->statistics();
  EXPECT_EQ(statistics.examples, 2);
  EXPECT_GT(statistics.bytes, 2000);
  EXPECT_GT(statistics.decode_seconds, 0);
  EXPECT_GT(statistics.resize_seconds, 0);
}

class ImageNetFolders : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"train/n02/b.JPEG", "train/n02/a.jpg", "train/n01/c.jpeg", "val/n01/x.JPEG"}) {
      folder.write(name, FlatJpeg::encode(20, 30, 100));
    }
    folder.write("train/n01/readme.txt", "no image");
    folder.write("train/.hidden/a.jpg", "no class");
  }
  std::unique_ptr<Dataset> opened(const std::string& class_list = "", bool training = true) const {
    return open(find("imagenet"), {.dir = folder.path().string(),
                                   .training = training,
                                   .images = {.side = 8, .class_list = class_list}});
  }
  static std::vector<std::int32_t> labels(const Dataset& dataset) {
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < dataset.size(); ++i) {
      labels.push_back(example_at(dataset, i, {}).label);
    }
    return labels;
  }

  TemporaryFolder folder;
};

TEST_F(ImageNetFolders, AreLabelledByTheirSortedNamesFromOne) {
  EXPECT_THAT(labels(*opened()), ElementsAre(1, 2, 2));
  EXPECT_THAT(labels(*opened("", false)), ElementsAre(1));
}

TEST_F(ImageNetFolders, AreLabelledByAListOfNames) {
  const std::string list = folder.write("names", "n02\nn00\nn01\n").string();
  EXPECT_THAT(labels(*opened(list)), ElementsAre(3, 1, 1));
  const std::string incomplete = folder.write("names", "n02\n").string();
  EXPECT_THAT(error_of([&] { opened(incomplete); }), HasSubstr("does not have the class n01"));
  const std::string twice = folder.write("names", "n02\nn02\n").string();
  EXPECT_THAT(error_of([&] { opened(twice); }), HasSubstr("twice"));
}

TEST_F(ImageNetFolders, NameABrokenOrLostFile) {
  const auto dataset = opened();
  folder.write("train/n02/a.jpg", "not a JPEG");
  EXPECT_THAT(error_of([&] { example_at(*dataset, 1, {}); }),
              AllOf(HasSubstr("n02/a.jpg"), HasSubstr("neither a JPEG nor a PNG")));
  std::filesystem::remove(folder.path() / "train/n02/a.jpg");
  EXPECT_THAT(error_of([&] { example_at(*dataset, 1, {}); }),
              AllOf(HasSubstr("cannot open"), HasSubstr("n02/a.jpg")));
}

TEST_F(ImageNetFolders, SayWhichFormsOfADataSetAreRead) {
  const TemporaryFolder empty;
  EXPECT_THAT(error_of([&] { open(find("imagenet"), {.dir = empty.path().string()}); }),
              AllOf(HasSubstr("train-*-of-*"), HasSubstr("folder train")));
  empty.write("train/readme", "");
  EXPECT_THAT(error_of([&] { open(find("imagenet"), {.dir = empty.path().string()}); }),
              HasSubstr("no folders, one for each class"));
  empty.write("train/n01/readme", "");
  EXPECT_THAT(error_of([&] { open(find("imagenet"), {.dir = empty.path().string()}); }),
              HasSubstr("hold no files that end with .jpg"));
}

}  // namespace
}  // namespace cnn::data
