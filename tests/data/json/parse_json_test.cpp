#include "data/json/parse_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace cnn::data {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string refusal_of(const std::string& text) {
  return tests::error_of([&] { parse_json<json>(text); });
}

bool is_cut_off(const std::string& text) {
  try {
    parse_json<json>(text);
  } catch (const JsonError& error) {
    return error.cut_off();
  }
  return false;
}

TEST(ParseJson, ReadsWhatIsJson) {
  EXPECT_EQ(parse_json<json>(R"({"a": [1, 2.5, "]]]]\"[[[["]})")["a"][1], 2.5);
  EXPECT_EQ(parse_json<nlohmann::ordered_json>(R"({"b": 1, "a": 2})").dump(), R"({"b":1,"a":2})");
}

TEST(ParseJson, SaysAtWhichLineAndColumnTheMistakeIs) {
  EXPECT_THAT(refusal_of("{\n  \"a\": 1,\n  \"b\": nonsense\n}"),
              StartsWith("not JSON at line 3, column 9: "));
  EXPECT_THAT(refusal_of("images/sec: 12\n"), StartsWith("not JSON at line 1, column 1: "));
  EXPECT_THAT(
      refusal_of("[1,\n1e999]"),
      AllOf(HasSubstr("beyond the range of a double at line 2, column 1"), HasSubstr("1e999")));
}

TEST(ParseJson, QuotesNoMoreThanALineOfTheText) {
  const std::string refusal = refusal_of("\"" + std::string(1'000'000, 'x') + "\n\x01");
  EXPECT_LT(refusal.size(), 300U);
  EXPECT_THAT(refusal, AllOf(Not(HasSubstr("\n")), EndsWith("...")));
}

TEST(ParseJson, KnowsATextThatEndsTooEarly) {
  EXPECT_TRUE(is_cut_off(""));
  EXPECT_TRUE(is_cut_off("{\"a\": [1, 2"));
  EXPECT_FALSE(is_cut_off("{\"a\": x}"));
}

TEST(ParseJson, RefusesDeepNestingAtItsPlace) {
  const std::string deepest = std::string(64, '[') + std::string(64, ']');
  EXPECT_EQ(parse_json<json>(deepest).dump(), deepest);
  EXPECT_THAT(refusal_of("\n" + std::string(65, '[') + std::string(65, ']')),
              HasSubstr("nested more deeply than 64 levels at line 2, column 65"));
  for (const char* bracket : {"[", "{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 200'000; ++i) {
      text += bracket;
    }
    EXPECT_THAT(refusal_of(text), HasSubstr("nested more deeply")) << bracket;
  }
}

TEST(ParseJson, RefusesAKeyTwiceInOneObject) {
  EXPECT_EQ(refusal_of(R"({"a": 1, "b": 2, "a": 1})"),
            "not readable: the key \"a\" is there twice");
  EXPECT_EQ(refusal_of(R"({"a": [{"c": 1}, {"c": {"x": 1, "\u0078": 2}}]})"),
            "not readable: the key \"a.c.x\" is there twice");
  EXPECT_EQ(refusal_of(R"([{"a": 1}, [{"b": {"c": 1}, "b": {"c": 1}}]])"),
            "not readable: the key \"b\" is there twice");
  const std::string apart = R"({"a":{"a":{"b":1},"b":[{"a":1},{"a":2}]},"b":{"a":1}})";
  EXPECT_EQ(parse_json<nlohmann::ordered_json>(apart).dump(), apart);
  const std::string name(1'000'000, 'x');
  EXPECT_LT(refusal_of("{\"" + name + "\":1,\"" + name + "\":1}").size(), 300U);
}

TEST(ParseJson, ShowsTheValuesToItsCaller) {
  int keys = 0;
  parse_json<json>(R"({"a": {"b": 1}})", [&](int, json::parse_event_t event, const json&) {
    keys += event == json::parse_event_t::key ? 1 : 0;
    return true;
  });
  EXPECT_EQ(keys, 2);
}

}  // namespace
}  // namespace cnn::data
