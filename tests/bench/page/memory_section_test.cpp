#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "bench/page/run_sections.h"

namespace cnn::page {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int one_mebibyte = 1 << 20;

Json arena_of_two_steps() {
  return {{"profile",
           {{"memory",
             {{"arena_bytes", 2 * one_mebibyte},
              {"steps",
               {{{"start", 0.0}, {"bytes", one_mebibyte}},
                {{"start", 0.02}, {"bytes", 2 * one_mebibyte}}}}}}}}};
}

std::string memory_of_one(const Json& json) {
  const ShownRun runs[] = {{"run", "a", &json}};
  return memory_section(runs);
}

TEST(MemorySection, IsEmptyWithoutAProfileOfMemory) {
  EXPECT_EQ(memory_of_one({}), "");
  EXPECT_EQ(memory_of_one({{"profile", {{"memory", {{"arena_bytes", 1}}}}}}), "");
}

TEST(MemorySection, ShowsTheArenaOfAFileWithoutVariables) {
  EXPECT_THAT(memory_of_one(arena_of_two_steps()),
              AllOf(HasSubstr(">arena 2.0 MiB</text>"), HasSubstr("without variables")));
}

TEST(MemorySection, PutsWhatLivesAboveTheVariables) {
  Json json = arena_of_two_steps();
  json["plan"] = {{"variable_bytes", one_mebibyte}, {"arena_bytes", 3 * one_mebibyte}};
  EXPECT_THAT(memory_of_one(json),
              AllOf(HasSubstr("variables 1.0 MiB"), HasSubstr(">arena 3.0 MiB</text>"),
                    HasSubstr("variables, and what lives above them")));
  json["memory"] = {{"arena_peak_bytes", 5 * one_mebibyte / 2}};
  EXPECT_THAT(memory_of_one(json), HasSubstr("arena 3.0 MiB, measured peak 2.5 MiB"));
}

TEST(MemorySection, NamesTheFirstDozenOfMoreTensorsAndAddsUpAll) {
  Json json = arena_of_two_steps();
  Json& biggest = json["profile"]["memory"]["biggest"];
  for (int i = 0; i < 13; ++i) {
    biggest.push_back({{"tensor", "<t" + std::to_string(i) + ">"}, {"bytes", 1024}});
  }
  EXPECT_THAT(memory_of_one(json), AllOf(HasSubstr("13: 13.0 KiB together; the first 12 of them"),
                                         HasSubstr("&lt;t11&gt;"), Not(HasSubstr("t12"))));
  biggest.erase(0);
  EXPECT_THAT(memory_of_one(json), AllOf(HasSubstr("12: 12.0 KiB together<"), HasSubstr("t12")));
}

TEST(MemorySection, SaysWhatLargeModelSupportDoesWhereItIsNecessary) {
  Json json;
  json["plan"]["lms"] = {{"necessary", true},
                         {"policy", "<planned>"},
                         {"need_bytes", 3 * one_mebibyte},
                         {"budget_bytes", one_mebibyte},
                         {"swapped_out_bytes", 5 * one_mebibyte},
                         {"swapped_in_bytes", 6 * one_mebibyte},
                         {"recomputed_nodes", "<script>"}};
  EXPECT_THAT(memory_of_one(json),
              AllOf(HasSubstr("3.0 MiB would be needed, 1.0 MiB are allowed"),
                    HasSubstr("Policy &lt;planned&gt; moves 5.0 MiB out and 6.0 MiB in"),
                    Not(HasSubstr("<script"))));
  for (const Json& other : {Json(false), Json(nullptr), Json(1)}) {
    json["plan"]["lms"]["necessary"] = other;
    EXPECT_EQ(memory_of_one(json), "") << other;
  }
}

}  // namespace
}  // namespace cnn::page
