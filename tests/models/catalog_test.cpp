#include "models/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "runtime/error.h"

namespace cnn::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

TEST(Catalog, FindsAModelByDataSetAndName) {
  const Model& model = find("imagenet", "resnet50");
  EXPECT_EQ(model.image_size, 224);
  EXPECT_EQ(model.batch_size, 64);
  EXPECT_EQ(model.classes, 1001);
  EXPECT_EQ(model.channels, 3);
  EXPECT_EQ(model.rate.rule, RateRule::resnet);
  EXPECT_EQ(model.fp16_loss_scale, 128);
}

TEST(Catalog, KeepsModelsOfOneNameOnTwoDataSetsApart) {
  EXPECT_EQ(find("imagenet", "alexnet").batch_size, 512);
  EXPECT_EQ(find("cifar10", "alexnet").batch_size, 128);
  EXPECT_EQ(find("cifar10", "alexnet").classes, 11);
  EXPECT_EQ(find("mnist", "lenet").channels, 1);
  EXPECT_EQ(find("mnist", "lenet").classes, 10);
}

TEST(Catalog, PrintsLenetAsLenet5) {
  EXPECT_EQ(find("imagenet", "lenet").printed_name, "lenet5");
  EXPECT_EQ(find("imagenet", "vgg16").printed_name, "vgg16");
}

TEST(Catalog, HasEveryRowOnce) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const Model& model : all()) {
    EXPECT_TRUE(seen.emplace(model.data_set, model.name).second) << model.name;
  }
  EXPECT_EQ(seen.size(), 52u);
}

TEST(Catalog, SuggestsTheModelThatWasMeant) {
  EXPECT_THAT(([] { find("imagenet", "resnet"); }),
              ThrowsMessage<Error>("--model=resnet: no such model for the data set imagenet; did "
                                   "you mean resnet50, resnet101, resnet152?"));
}

TEST(Catalog, NamesTheKnownModelsWhereNoneIsSimilar) {
  EXPECT_THAT(([] { find("cifar10", "transformer"); }),
              ThrowsMessage<Error>(
                  AllOf(StartsWith("--model=transformer: no such model for the data set cifar10"),
                        HasSubstr("choose one of "), HasSubstr("resnet20, resnet20_v2"))));
}

TEST(Catalog, NamesTheDataSetThatHasTheModel) {
  EXPECT_THAT(([] { find("cifar10", "resnet50"); }),
              ThrowsMessage<Error>("--model=resnet50: no such model for the data set cifar10; it "
                                   "needs --data_name=imagenet"));
}

TEST(Catalog, SaysWhatNetworksThatAreNotHereAreFor) {
  EXPECT_THAT(([] { find("imagenet", "ssd300"); }),
              ThrowsMessage<Error>(AllOf(
                  StartsWith("--model=ssd300: this program trains image classifiers, and ssd300 is "
                             "a network for object detection; choose one of trivial, "),
                  HasSubstr("nasnetlarge, official_resnet18"))));
  EXPECT_THAT(([] { find("imagenet", "deepspeech2"); }),
              ThrowsMessage<Error>(HasSubstr("a network for speech recognition")));
  EXPECT_THAT(([] { find("cifar10", "ncf"); }),
              ThrowsMessage<Error>(HasSubstr("a network for recommendation")));
}

TEST(Catalog, SuggestsOfficialNetworksByTheirNames) {
  EXPECT_THAT(([] { find("imagenet", "official_resnet50v2"); }),
              ThrowsMessage<Error>(HasSubstr("did you mean official_resnet50_v2")));
  EXPECT_THAT(([] { find("imagenet", "nasnet_large"); }),
              ThrowsMessage<Error>(HasSubstr("did you mean nasnetlarge")));
}

TEST(Catalog, HasTheBatchesAndPrintedNamesOfTheOriginal) {
  EXPECT_EQ(find("imagenet", "nasnet").batch_size, 32);
  EXPECT_EQ(find("imagenet", "nasnetlarge").batch_size, 16);
  EXPECT_EQ(find("imagenet", "nasnetlarge").image_size, 331);
  EXPECT_EQ(find("imagenet", "nasnetlarge").printed_name, "nasnet");
  EXPECT_EQ(find("cifar10", "nasnet").rate.rate, 0.025);
  EXPECT_EQ(find("imagenet", "official_resnet50").batch_size, 128);
  EXPECT_EQ(find("imagenet", "official_resnet50_v2").batch_size, 128);
  EXPECT_EQ(find("imagenet", "official_resnet101").batch_size, 32);
  EXPECT_EQ(find("imagenet", "official_resnet200").printed_name, "official_resnet_200_v1");
}

TEST(Catalog, SaysWhichDataSetsThereAre) {
  EXPECT_THAT(([] { find("coco", "trivial"); }),
              ThrowsMessage<Error>(HasSubstr("imagenet, cifar10 and mnist")));
}

}  // namespace
}  // namespace cnn::models
