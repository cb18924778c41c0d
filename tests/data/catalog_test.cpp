#include "data/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/files.h"

namespace cnn::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Catalog, GuessesTheDataSetFromThePathAsUpstream) {
  EXPECT_EQ(guess("").name, "imagenet");
  EXPECT_EQ(guess("/data/imagenet").name, "imagenet");
  EXPECT_EQ(guess("/data/cifar10").name, "cifar10");
  EXPECT_EQ(guess("/cifar10/imagenet").name, "imagenet");
  EXPECT_EQ(guess("librispeech").name, "librispeech");
  EXPECT_EQ(guess("/coco/2017").name, "coco");
  EXPECT_EQ(guess("/data/digits.safetensors").name, "tensors");
  EXPECT_EQ(guess("/usr/share/datasets/fashion-mnist").name, "mnist");
}

TEST(Catalog, SaysWhatToDoWhenThePathTellsNothing) {
  EXPECT_THAT(error_of([] { guess("/data/tensors"); }),
              AllOf(HasSubstr("/data/tensors"), HasSubstr("--data_name"), HasSubstr("tensors")));
  EXPECT_FALSE(error_of([] { guess("/data/ImageNet"); }).empty());
}

TEST(Catalog, ListsTheNamesWhenOneIsUnknown) {
  EXPECT_THAT(error_of([] { find("imagnet"); }),
              AllOf(HasSubstr("'imagnet'"), HasSubstr("imagenet, cifar10, mnist or tensors")));
}

TEST(Catalog, KnowsTheSizesOfTheOriginals) {
  EXPECT_EQ(find("imagenet").training_examples, 1281167);
  EXPECT_EQ(find("imagenet").classes, 1001);
  EXPECT_EQ(find("cifar10").training_examples, 50000);
  EXPECT_EQ(find("cifar10").validation_examples, 10000);
  EXPECT_EQ(find("cifar10").classes, 11);
  EXPECT_EQ(find("mnist").training_examples, 60000);
  EXPECT_EQ(find("mnist").classes, 10);
}

TEST(Catalog, TellsWhatCanRun) {
  EXPECT_TRUE(can_run(find("imagenet")));  // it runs on synthetic images
  EXPECT_TRUE(can_run(find("tensors")));
  EXPECT_FALSE(can_run(find("coco")));
}

TEST(Catalog, SaysWhichFilesItDoesNotRead) {
  EXPECT_THAT(error_of([] { open(find("coco"), {.dir = "/data/coco"}); }),
              AllOf(HasSubstr("coco"), HasSubstr("synthetic"), HasSubstr("imagenet")));
}

TEST(Catalog, RepeatsTheFirstExampleWhenAsked) {
  const TemporaryFolder folder;
  write_mnist(folder, 5);
  const auto mnist = open(find("mnist"), {.dir = folder.path().string(), .repeat_first = true});
  EXPECT_EQ(mnist->size(), 5);
  EXPECT_EQ(mnist->format().width, 28);
  EXPECT_EQ(read_one(*mnist, 4).label, 0);
  EXPECT_THAT(read_one(*mnist, 4).image, testing::Each(0));
}

}  // namespace
}  // namespace cnn::data
