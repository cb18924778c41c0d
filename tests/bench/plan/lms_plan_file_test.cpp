#include "bench/plan/lms_plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"
#include "tests/support/swapping_step.h"

namespace cnn::bench {
namespace {

using testing::HasSubstr;
using tests::error_of;
using tests::identical;
using tests::swapping_plan;
using tests::test_kernels;
using tests::TestStep;

class PlanFileTest : public testing::Test {
 protected:
  StepPlan plan = swapping_plan();
  const Graph& graph = *plan.graph;
  PlanOrigin origin{.facts = {{"model", "resnet20"}, {"batch_size", "64"}, {"precision", "f32"}},
                    .graph = hash_of(*plan.graph)};
  SavedPlan saved{.policy = "planned",
                  .slices = 4,
                  .row_slices = 3,
                  .dense_slices = 5,
                  .host_variables = true,
                  .budget = 4000,
                  .peak = 3000,
                  .host = 256,
                  .bucket_bytes = 1000,
                  .schedule = plan.schedule};
  std::string text = plan_json(saved, origin, graph).dump(1);

  std::string refusal(const std::string& read, const PlanOrigin& origin) const {
    return error_of([&] { read_plan(read, origin, graph); });
  }
  // Returns the file's text with one value changed.
  std::string with(const std::string& key, const Json& value) const {
    Json changed = Json::parse(text);
    changed[key] = value;
    return changed.dump(1);
  }
};

TEST_F(PlanFileTest, HasALineForEachStep) {
  EXPECT_THAT(text, HasSubstr("\n  \"run 1 scale\",\n"));
  EXPECT_THAT(text, HasSubstr("\n  \"out 1 " + graph.info(TensorId{1}).name));
  EXPECT_THAT(text, HasSubstr("\n  \"in 1 " + graph.info(TensorId{1}).name));
}

TEST_F(PlanFileTest, IsReadAsItWasWritten) {
  const SavedPlan read = read_plan(text, origin, graph);
  EXPECT_EQ(read.policy, "planned");
  EXPECT_EQ(read.slices, 4);
  EXPECT_EQ(read.row_slices, 3);
  EXPECT_EQ(read_plan_sizes(text).slices, 4);
  EXPECT_EQ(read_plan_sizes(text).row_slices, 3);
  EXPECT_EQ(read.dense_slices, 5);
  EXPECT_EQ(read_plan_sizes(text).dense_slices, 5);
  EXPECT_TRUE(read.host_variables);
  EXPECT_TRUE(read_plan_sizes(text).host_variables);
  EXPECT_EQ(read.budget, 4000U);
  EXPECT_EQ(read.peak, 3000U);
  EXPECT_EQ(read.host, 256U);
  EXPECT_EQ(read.bucket_bytes, 1000U);
  EXPECT_EQ(plan_json(read, origin, graph).dump(1), text);
  for (std::size_t s = 0; s < read.schedule.steps.size(); ++s) {
    EXPECT_EQ(read.schedule.steps[s].lane, plan.schedule.steps[s].lane) << s;
    EXPECT_EQ(read.schedule.steps[s].after, plan.schedule.steps[s].after) << s;
  }
}

TEST_F(PlanFileTest, IsRefusedWithTheDifferencesIfItIsForAnotherStep) {
  PlanOrigin other = origin;
  other.facts[1].second = "32";
  other.facts[2].second = "bf16";
  EXPECT_THAT(refusal(text, other),
              HasSubstr("the plan is for another step: batch_size 64 (here 32), precision f32 "
                        "(here bf16); make one for this run with --lms_plan_out"));
  other = origin;
  ++other.graph;
  EXPECT_THAT(refusal(text, other), HasSubstr("the plan is for another graph of this network"));
}

TEST_F(PlanFileTest, IsRefusedIfTheVersionOrKindDiffers) {
  EXPECT_THAT(refusal(with("version", 2), origin), HasSubstr("it has version 2 of the format"));
  EXPECT_THAT(refusal(with("version", 5e39), origin), HasSubstr("it has version 5e+39 of"));
  EXPECT_THAT(refusal(with("format", "else"), origin), HasSubstr("it is no plan"));
  EXPECT_THAT(refusal("[]", origin), HasSubstr("it is no plan"));
  for (const Json& steps : {Json(5), Json(), Json::object(), Json("run 0 conv")}) {
    EXPECT_THAT(refusal(with("steps", steps), origin),
                HasSubstr("another kind: \"steps\" is " + std::string(steps.type_name())));
  }
  EXPECT_THAT(refusal(with("policy", nullptr), origin), HasSubstr("another kind"));
}

TEST_F(PlanFileTest, IsRefusedWithAnImpossibleValue) {
  EXPECT_THAT(refusal(with("policy", "thrifty"), origin), HasSubstr("thrifty"));
  for (const char* name : {"budget_bytes", "peak_bytes", "host_bytes", "enough_bytes",
                           "bucket_bytes", "largest_join_bytes"}) {
    for (const Json& value : {Json(-5), Json(1.5), Json("7")}) {
      EXPECT_THAT(
          refusal(with(name, value), origin),
          HasSubstr(std::string(name) + "\" is " + value.dump() + ", not a number of bytes"));
    }
  }
}

TEST_F(PlanFileTest, IsRefusedWithAKeyTwice) {
  const std::pair<std::string, std::string> members[] = {
      {"policy", "\"policy\": \"planned\""}, {"of.batch_size", "\"batch_size\": \"64\""}};
  for (const auto& [key, once] : members) {
    std::string twice = text;
    twice.insert(twice.find(once), once + ",");
    const std::string expected = "it is not readable: the key \"" + key +
                                 "\" is there twice; make one for this run with --lms_plan_out";
    EXPECT_EQ(refusal(twice, origin), expected);
    EXPECT_EQ(error_of([&] { read_plan_sizes(twice); }), expected);
  }
  Json nested = Json::parse(text);
  nested["of"]["policy"] = "a fact of the name of another key";
  EXPECT_EQ(read_plan(nested.dump(), origin, graph).policy, "planned");
}

TEST_F(PlanFileTest, ComputesTheWholeBatchIfAnOlderProgramWroteIt) {
  Json older = Json::parse(text);
  older.erase("slices");
  older.erase("row_slices");
  older.erase("dense_slices");
  EXPECT_EQ(read_plan(older.dump(), origin, graph).slices, 1);
  EXPECT_EQ(read_plan_sizes(older.dump()).slices, 1);
  EXPECT_EQ(read_plan_sizes(older.dump()).row_slices, 1);
  EXPECT_EQ(read_plan_sizes(older.dump()).dense_slices, 1);
}

TEST_F(PlanFileTest, HasVariablesOnTheDeviceIfAnOlderProgramWroteIt) {
  Json older = Json::parse(text);
  older.erase("host_variables");
  EXPECT_FALSE(read_plan(older.dump(), origin, graph).host_variables);
  EXPECT_FALSE(read_plan_sizes(older.dump()).host_variables);
  EXPECT_NE(refusal(with("host_variables", 1), origin), "");
}

TEST_F(PlanFileTest, IsRefusedInSlicesThatNoPlanHas) {
  for (const Json& value : {Json(-4), Json(0), Json(1.5), Json("4"), Json(100'000)}) {
    EXPECT_THAT(refusal(with("slices", value), origin),
                HasSubstr("\"slices\" is " + value.dump() + ", not a number from 1 to 1024"));
  }
}

TEST_F(PlanFileTest, IsRefusedWhereverItIsCutOff) {
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_NE(refusal(text.substr(0, length), origin), "") << length;
  }
}

TEST_F(PlanFileTest, NamesTheStepThatIsNone) {
  const auto refusal_of = [&](const std::string& step) {
    return refusal(with("steps", Json::array({step})), origin);
  };
  EXPECT_THAT(refusal_of("run 1 relu"), HasSubstr("step 0 ('run 1 relu') names a node that is"));
  EXPECT_THAT(refusal_of("run 99 relu"), HasSubstr("has '99' where a number below 4 is due"));
  EXPECT_THAT(refusal_of("run -1 relu"), HasSubstr("has '-1'"));
  EXPECT_THAT(refusal_of("run 99999999999999999999 relu"), HasSubstr("where a number below"));
  EXPECT_THAT(refusal_of("out 1 else"), HasSubstr("names a tensor that is"));
  EXPECT_THAT(refusal_of("fetch 0 x"),
              HasSubstr("begins with none of run, out, in, store and load"));
  EXPECT_THAT(refusal_of("in 0 x before 1"), HasSubstr("is none"));
  EXPECT_THAT(refusal_of("in 0 x after 0"), HasSubstr("has '0' where a number below 0 is due"));
  EXPECT_THAT(refusal_of(""), HasSubstr("is none"));
}

// If steps are left out, repeated or reordered, the file is refused or the plan computes the same
// bits.
TEST_F(PlanFileTest, IsRefusedOrComputesTheSameBitsAfterAnEdit) {
  TestStep step(swapping_plan(), test_kernels());
  step.run();
  const std::vector<float> outcome = step.outcome();
  const Json file = Json::parse(text);
  int refused = 0, ran = 0;
  const auto attempt = [&](const Json& steps) {
    try {
      SavedPlan read = read_plan(with("steps", steps), origin, graph);
      StepPlan edited = make_plan(plan.graph, plan.specs, std::move(read.schedule));
      TestStep other(std::move(edited), test_kernels());
      other.run();
      EXPECT_TRUE(identical(other.outcome(), outcome)) << steps;
      ++ran;
    } catch (const Error& error) {
      EXPECT_STRNE(error.what(), "");
      ++refused;
    }
  };
  const std::size_t count = file["steps"].size();
  for (std::size_t i = 0; i < count; ++i) {
    Json without = file["steps"];
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    attempt(without);
    for (std::size_t j = 0; j < count; ++j) {
      Json moved = without;
      moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(j % without.size()),
                   file["steps"][i]);
      attempt(moved);
      Json twice = file["steps"];
      twice.insert(twice.begin() + static_cast<std::ptrdiff_t>(j), file["steps"][i]);
      attempt(twice);
    }
  }
  EXPECT_GT(refused, 20);
  EXPECT_GT(ran, 10);
}

TEST_F(PlanFileTest, NamesItsFlagAndPathInErrors) {
  const tests::TemporaryFolder folder;
  const std::string path = folder / "plan.json";
  EXPECT_THAT(error_of([&] { load_plan(path, origin, graph); }),
              HasSubstr("--lms_plan_file=" + path + ": cannot read it"));
  PlanFile(path).write(saved, origin, graph);
  EXPECT_EQ(load_plan(path, origin, graph).peak, 3000U);
  EXPECT_EQ(load_plan_sizes(path).bucket_bytes, 1000U);
  EXPECT_THAT(error_of([&] { PlanFile(folder / "none/plan.json"); }), HasSubstr("--lms_plan_out="));
}

TEST_F(PlanFileTest, IsReadFromRegularFilesOnly) {
  EXPECT_EQ(error_of([&] { load_plan_sizes("/dev/null"); }),
            "--lms_plan_file=/dev/null: it is no regular file");
}

TEST_F(PlanFileTest, KeepsATripToTheDisk) {
  const StepPlan stores = tests::storing_plan();
  SavedPlan with_disk = saved;
  with_disk.schedule = stores.schedule;
  const PlanOrigin same{.facts = origin.facts, .graph = hash_of(*stores.graph)};
  const std::string written = plan_json(with_disk, same, *stores.graph).dump(1);
  EXPECT_THAT(written, HasSubstr("\n  \"store 1 scale#0 after 3\""));
  EXPECT_THAT(written, HasSubstr("\n  \"load 1 scale#0\""));
  const SavedPlan read = read_plan(written, same, *stores.graph);
  EXPECT_EQ(read.schedule.steps[4].lane, Lane::disk);
  EXPECT_EQ(read.schedule.steps[6].lane, Lane::disk);
  EXPECT_EQ(to_string(make_plan(stores.graph, stores.specs, read.schedule)), to_string(stores));
}

}  // namespace
}  // namespace cnn::bench
