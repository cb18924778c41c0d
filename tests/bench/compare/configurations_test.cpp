#include "bench/compare/configurations.h"

#include <chrono>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/bench/compare/runs.h"

namespace cnn::compare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal_of_sides(std::vector<Run> base, std::vector<Run> candidate) {
  try {
    find_configurations(std::move(base), std::move(candidate), false);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

Json with(std::initializer_list<std::pair<const char*, Json>> values) {
  Json json = result_of({0.1, 0.2});
  for (const auto& [pointer, value] : values) {
    json[Json::json_pointer(pointer)] = value;
  }
  return json;
}

TEST(Configurations, AreSortedOutByWhatTheRunsDo) {
  const Json small = with({}), large = with({{"/model/name", "resnet50"}});
  const auto found =
      find_configurations({run_of(small), run_of(large), run_of(with({}))},
                          {run_of(with({{"/model/name", "resnet50"}})), run_of(with({}))}, false);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].label, "resnet20, 16 images");
  EXPECT_EQ(found[0].base.size(), 2U);
  EXPECT_EQ(found[0].candidate.size(), 1U);
  EXPECT_EQ(found[1].label, "resnet50, 16 images");
}

TEST(Configurations, NameTheFlagInWhichTheyDiffer) {
  const Json plain = with({}), fused = with({{"/config/fusion", "none"}});
  const auto found =
      find_configurations({run_of(plain), run_of(fused)},
                          {run_of(with({})), run_of(with({{"/config/fusion", "none"}}))}, false);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].label, "resnet20, 16 images, --fusion=none");
}

TEST(Configurations, AreTheSameInABuildWithMoreFlags) {
  EXPECT_EQ(refusal_of_sides({run_of(with({}))}, {run_of(with({{"/config/new_flag", true}}))}),
            "accepted");
}

TEST(Configurations, AreRefusedByNameIfTheyCannotBeCompared) {
  EXPECT_THAT(refusal_of_sides({run_of(with({}), "old.json")},
                               {run_of(with({{"/model/name", "vgg16"}}), "new.json")}),
              HasSubstr("old.json and new.json differ in model (resnet20 and vgg16)"));
  EXPECT_THAT(refusal_of_sides({run_of(with({}))}, {run_of(with({{"/plan/precision", "bf16"}}))}),
              HasSubstr("precision (f32 and bf16)"));
  EXPECT_THAT(
      refusal_of_sides({run_of(with({}))}, {run_of(with({{"/machine/gpu", {{"name", "H100"}}}}))}),
      HasSubstr("GPU (none and H100)"));
  EXPECT_THAT(
      refusal_of_sides({run_of(with({{"/steps/0/images_per_sec", 320.0}}))}, {run_of(with({}))}),
      HasSubstr("images per step (32 and 16)"));
  EXPECT_THAT(refusal_of_sides({run_of(with({}))},
                               {run_of(with({})), run_of(with({{"/config/fusion", "none"}}))}),
              HasSubstr("--fusion (none and auto)"));
}

TEST(Configurations, AreComparedAcrossMachinesOnRequestOnly) {
  const Runs here{run_of(with({}))};
  const Runs there{run_of(with({{"/machine/cpu/name", "Other CPU"}}))};
  EXPECT_THAT(refusal_of_sides(here, there), HasSubstr("processor (Some CPU and Other CPU)"));
  EXPECT_EQ(find_configurations(here, there, true).size(), 1U);
}

TEST(Configurations, DoNotCountARunTwice) {
  const Json json = with({});
  EXPECT_THAT(
      refusal_of_sides({run_of(json, "a.json"), run_of(json, "b.json")}, {run_of(with({}))}),
      HasSubstr("a.json and b.json are one run"));
}

TEST(Configurations, RefuseAFileThatIsNamedTwiceOnOneSide) {
  const Json json = with({});
  EXPECT_THAT(refusal_of_sides({run_of(json), run_of(json)}, {run_of(with({}))}),
              HasSubstr("a.json is named twice: count it once"));
}

TEST(Configurations, RefuseOneRunOnBothSides) {
  const Json shared = with({});
  EXPECT_THAT(refusal_of_sides({run_of(shared)}, {run_of(shared)}),
              HasSubstr("a.json is named twice, once on each side"));
  EXPECT_THAT(refusal_of_sides({run_of(with({})), run_of(shared, "base.json")},
                               {run_of(with({})), run_of(shared, "copy.json")}),
              HasSubstr("base.json and copy.json are one run, once on each side: a run compared "
                        "with itself shows no regression"));
}

TEST(Configurations, RefuseACopyOnTheOtherSideThatWasEdited) {
  const Json original = with({});
  Json edited = original;
  edited["command"] = "another";
  EXPECT_THAT(refusal_of_sides({run_of(original, "base.json")}, {run_of(edited, "new.json")}),
              HasSubstr("base.json and new.json are one run"));
}

TEST(Configurations, RefuseACopyOfAResultThatDoesNotSayWhenItStarted) {
  Json old = with({});
  old.erase("started");
  EXPECT_THAT(refusal_of_sides({run_of(old, "base.json")}, {run_of(old, "new.json")}),
              HasSubstr("base.json and new.json are one run"));
}

// Comparing the JSON of each two of these runs takes minutes.
TEST(Configurations, AreFoundInThousandsOfRunsWithinSeconds) {
  constexpr int count = 3000, flags = 200;
  Json result = with({});
  for (int flag = 0; flag < flags; ++flag) {
    result["config"][fmt::format("flag_{}", flag)] = flag;
  }
  Runs runs;
  for (int i = 0; i < count; ++i) {
    result["started"] = fmt::format("{:05}", i);
    runs.push_back(run_of(result, fmt::format("{}.json", i)));
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(group_runs(runs, false).size(), 1U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(Configurations, NeedFilesOnBothSides) {
  EXPECT_THAT(refusal_of_sides({}, {run_of(with({}))}), HasSubstr("on both sides"));
}

TEST(Configurations, TellWhatIsUnlikeAroundThem) {
  const auto found = find_configurations(
      {run_of(with({}))}, {run_of(with({{"/machine/libraries/oneDNN", "3.4.1"}}))}, false);
  EXPECT_THAT(unlike_surroundings(found.front()), ElementsAre("oneDNN: 3.2.0 before, 3.4.1 now"));
}

}  // namespace
}  // namespace cnn::compare
