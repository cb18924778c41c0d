#include "runtime/spelling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

namespace cnn {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<std::string>& networks() {
  static const std::vector<std::string> names{"trivial",   "lenet",     "resnet50",
                                              "resnet101", "resnet152", "resnet50_v1.5",
                                              "vgg11",     "vgg16",     "mobilenet"};
  return names;
}

TEST(Spelling, CountsInsertionsDeletionsSubstitutionsAndTranspositions) {
  EXPECT_EQ(edit_distance("adam", "adam"), 0U);
  EXPECT_EQ(edit_distance("adamw", "adam"), 1U);
  EXPECT_EQ(edit_distance("adm", "adam"), 1U);
  EXPECT_EQ(edit_distance("adas", "adam"), 1U);
  EXPECT_EQ(edit_distance("daam", "adam"), 1U);
  EXPECT_EQ(edit_distance("", "adam"), 4U);
  EXPECT_EQ(edit_distance("ca", "abc"), 3U);
  EXPECT_EQ(edit_distance("moemtnum", "momentum"), 2U);
}

TEST(Spelling, MeasuresWordsOfAnyLength) {
  EXPECT_EQ(edit_distance(std::string(1'000'000, 'x'), "adam"), 1'000'000U);
}

TEST(Spelling, SuggestsTheShortestNamesThatBeginWithTheWord) {
  EXPECT_THAT(similar_names("resnet", networks()),
              ElementsAre("resnet50", "resnet101", "resnet152"));
  EXPECT_THAT(similar_names("mobile", networks()), ElementsAre("mobilenet"));
}

TEST(Spelling, SuggestsOnlyTheNearestOfOtherNames) {
  EXPECT_THAT(similar_names("resnet51", networks()), ElementsAre("resnet50"));
  EXPECT_THAT(similar_names("vgg13", networks()), ElementsAre("vgg11", "vgg16"));
  EXPECT_THAT(similar_names("Lenet", networks()), ElementsAre("lenet"));
}

TEST(Spelling, SuggestsNothingWhereNoNameIsNear) {
  EXPECT_THAT(similar_names("transformer", networks()), IsEmpty());
  EXPECT_THAT(similar_names("", networks()), IsEmpty());
  EXPECT_THAT(similar_names("r", networks()), IsEmpty());
}

TEST(Spelling, WritesSuggestionsAsTheEndOfAMessage) {
  EXPECT_EQ(did_you_mean("resnet", networks()), "; did you mean resnet50, resnet101, resnet152?");
  EXPECT_EQ(did_you_mean("transformer", networks()), "");
}

}  // namespace
}  // namespace cnn
