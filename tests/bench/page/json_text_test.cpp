#include "bench/page/json_text.h"

#include <gtest/gtest.h>

namespace cnn::page {
namespace {

const Json nested_json = {{"a", {{"b", 2.5}, {"list", {1, 2}}, {"none", nullptr}}}, {"text", "t"}};

TEST(JsonText, FindsWhatLiesUnderKeys) {
  EXPECT_EQ(at(nested_json, {"a", "b"}), 2.5);
  EXPECT_EQ(&at(nested_json, {}), &nested_json);
}

TEST(JsonText, HasNullForWhatIsMissing) {
  EXPECT_TRUE(at(nested_json, {"x"}).is_null());
  EXPECT_TRUE(at(nested_json, {"a", "x", "y"}).is_null());
  EXPECT_TRUE(at(nested_json, {"text", "x"}).is_null()) << "a text has no keys";
  EXPECT_TRUE(at(nested_json, {"a", "list", "0"}).is_null());
}

TEST(JsonText, TakesNumbersForNumbersOnly) {
  EXPECT_EQ(number_at(nested_json, {"a", "b"}), 2.5);
  EXPECT_EQ(number_at(nested_json, {"a", "none"}), std::nullopt);
  EXPECT_EQ(number_at(nested_json, {"text"}), std::nullopt);
  EXPECT_EQ(number_at(Json{{"yes", true}}, {"yes"}), std::nullopt);
  EXPECT_EQ(number_or(Json{{"zero", 0}}, "zero", 7), 0);
  EXPECT_EQ(number_or(nested_json, "text", 7), 7);
}

TEST(JsonText, TakesTrueForTrueOnly) {
  const Json json{{"yes", true}, {"no", false}, {"one", 1}, {"text", "true"}};
  EXPECT_TRUE(is_true(json, "yes"));
  for (const char* key : {"no", "one", "text", "missing"}) {
    EXPECT_FALSE(is_true(json, key)) << key;
  }
  EXPECT_FALSE(is_true(Json(3), "yes"));
}

TEST(JsonText, WritesTextsWithoutQuotationMarks) {
  EXPECT_EQ(text_of("a \"b\""), "a \"b\"");
  EXPECT_EQ(text_of(nullptr), "");
  EXPECT_EQ(text_of(12), "12");
  EXPECT_EQ(text_of(true), "true");
  EXPECT_EQ(text_of(Json{{"a", "b"}}), R"({"a":"b"})");
}

}  // namespace
}  // namespace cnn::page
