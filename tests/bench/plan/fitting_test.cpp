#include "bench/plan/fitting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/ranks/rank_context.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

// A job on a profile's P100.
struct Simulated {
  Config config;
  Backend backend;
  Job job;

  explicit Simulated(const char* model, std::int64_t batch) : config(config_of(model, batch)) {
    backend = make_backend(config, {});
    job = make_job(config, context());
  }

  RankContext context() const { return only_rank(backend); }
  static Config config_of(const char* model, std::int64_t batch) {
    Config config;
    config.model.name = model;
    config.size.batch = static_cast<int>(batch);
    config.gpu.simulate = "p100-pcie3";
    return config;
  }
  Sizes of_image(std::int64_t pixels) const {
    Sizes sizes = sizes_of(job);
    sizes.image_size = pixels;
    return sizes;
  }
};

TEST(Fitting, FindsTheLastBatchThatRuns) {
  const Simulated run("resnet50", 64);
  const RankContext context = run.context();
  const Fitting fitting(run.job, context, false);
  const std::int64_t largest = largest_batch(run.job, run.context(), false);
  EXPECT_EQ(largest, 208);
  EXPECT_TRUE(fitting.runs(with_batch(run.job, largest)));
  EXPECT_FALSE(fitting.runs(with_batch(run.job, largest + 1)));
  EXPECT_EQ(fitting.limit(), run.backend.memory.device);
  EXPECT_LE(fitting.min_bytes(with_batch(run.job, largest)), fitting.limit());
}

TEST(Fitting, NamesTheFlagThatSetsTheLimit) {
  Simulated run("resnet50", 64);
  EXPECT_EQ(Fitting(run.job, run.context(), true).limit_source(), run.backend.memory.text);
  run.config.lms.limit = 5;
  EXPECT_EQ(Fitting(run.job, run.context(), true).limit_source(), "--lms_limit=5");
  EXPECT_EQ(Fitting(run.job, run.context(), false).limit_source(), run.backend.memory.text);
}

TEST(WithBatch, ChangesTheEvaluationUnlessItsBatchIsGiven) {
  Simulated run("resnet50", 64);
  run.config.eval.every_n_steps = 2;
  for (const int flag : {0, -1, 16}) {
    run.config.eval.batch = flag;
    run.job = make_job(run.config, run.context());
    EXPECT_EQ(with_batch(run.job, 8).eval_batch, flag > 0 ? flag : 8) << flag;
  }
}

TEST(CompilePrograms, NameTheFlagOrTheFileThatWantsVariablesOnTheHostInVain) {
  Simulated run("alexnet", 8);
  run.job.ranks = 2;
  Sizes sizes = sizes_of(run.job);
  sizes.host_variables = true;
  const auto refusal = [&] {
    return tests::error_of([&] { compile_programs(run.job, run.context(), sizes); });
  };
  EXPECT_THAT(refusal(), testing::StartsWith("--lms_variables=on: variables lie on the host only"));
  run.config.lms.plan_file = "plan.json";
  EXPECT_EQ(refusal(),
            "--lms_plan_file=plan.json: \"host_variables\" is true, but variables lie on the host "
            "only in the training in f32 of one device with a memory of its own; make one for this "
            "run with --lms_plan_out");
}

TEST(Fitting, FindsTheSameWhereverItStarts) {
  const Simulated small("resnet50", 1);
  const Simulated large("resnet50", 3000);
  EXPECT_EQ(largest_batch(small.job, small.context(), false), 208);
  EXPECT_EQ(largest_batch(large.job, large.context(), false), 208);
}

TEST(Fitting, FindsTheLastImageThatRunsInStepsOfSixteenPixels) {
  const Simulated run("googlenet", 1);
  const RankContext context = run.context();
  const Fitting fitting(run.job, context, false);
  const std::int64_t largest = largest_image(run.job, run.context(), false);
  EXPECT_EQ(largest % image_step, 0);
  EXPECT_GT(largest, 6944);  // TensorFlow ran out of this memory there
  EXPECT_TRUE(fitting.runs(run.of_image(largest)));
  EXPECT_FALSE(fitting.runs(run.of_image(largest + image_step)));
}

TEST(Fitting, FindsAnImageBelowOneThatDoesNotFit) {
  Simulated run("googlenet", 1);
  run.job.image_size = 20'000;
  EXPECT_EQ(largest_image(run.job, run.context(), false),
            largest_image(Simulated("googlenet", 1).job, run.context(), false));
}

TEST(Fitting, FindsNothingWhereMemoryIsTooSmallForOneExample) {
  Simulated run("resnet50", 8);
  run.backend.memory.device = std::size_t{100} << 20U;
  EXPECT_EQ(largest_batch(run.job, run.context(), false), 0);
  EXPECT_EQ(largest_batch(run.job, run.context(), true), 0);
  run.backend.memory.device = std::size_t{1} << 20U;
  EXPECT_EQ(largest_image(run.job, run.context(), false), 0);
}

TEST(LargestBatchText, NamesTheSizeOfTheEvaluationThatLeavesNoRoom) {
  Simulated run("resnet50", 8);
  EXPECT_EQ(largest_batch_text(run.job, run.context(), false),
            "the largest --batch_size that fits is 208");
  run.config.eval.batch = 4000;
  run.config.eval.every_n_steps = 2;
  run.job = make_job(run.config, run.context());
  EXPECT_EQ(largest_batch_text(run.job, run.context(), false),
            "not even --batch_size=1 fits beside --eval_batch_size=4000; use a smaller "
            "--eval_batch_size, model or --image_size");
  run.backend.memory.device = std::size_t{1} << 20U;
  run.config.eval.batch = 0;
  run.job = make_job(run.config, run.context());
  EXPECT_EQ(largest_batch_text(run.job, run.context(), false),
            "not even --batch_size=1 fits; use a smaller model or --image_size");
}

TEST(LargestEvalBatchText, NamesTheLargestEvaluationBesideTheTraining) {
  Simulated run("resnet50", 8);
  run.config.eval.batch = 4000;
  run.config.eval.every_n_steps = 2;
  run.job = make_job(run.config, run.context());
  const std::string text = largest_eval_batch_text(run.job, run.context());
  const std::string start = "the largest --eval_batch_size that fits is ";
  ASSERT_THAT(text, testing::StartsWith(start));
  const std::int64_t largest = std::stoll(text.substr(start.size()));
  const RankContext context = run.context();
  const Fitting fitting(run.job, context, false);
  Sizes sizes = sizes_of(run.job);
  sizes.eval_batch = largest;
  EXPECT_TRUE(fitting.runs(sizes));
  ++sizes.eval_batch;
  EXPECT_FALSE(fitting.runs(sizes));
  run.config.size.batch = 4000;
  run.job = make_job(run.config, run.context());
  EXPECT_EQ(largest_eval_batch_text(run.job, run.context()),
            "not even --eval_batch_size=1 fits beside --batch_size=4000; use a smaller "
            "--batch_size, model or --image_size");
  run.backend.memory.device = std::size_t{1} << 20U;
  run.job.mode = Mode::evaluation;
  EXPECT_EQ(largest_eval_batch_text(run.job, run.context()),
            "not even --eval_batch_size=1 fits; use a smaller model or --image_size");
}

TEST(Fitting, FindsWithLmsWhatAPlanRuns) {
  Simulated run("alexnet", 8);
  run.backend.memory.device = std::size_t{1500} << 20U;
  const std::int64_t without = largest_batch(run.job, run.context(), false);
  const std::int64_t with = largest_batch(run.job, run.context(), true);
  EXPECT_GT(with, without);
  const RankContext context = run.context();
  const Fitting fitting(run.job, context, true);
  EXPECT_TRUE(fitting.runs(with_batch(run.job, with)));
  EXPECT_FALSE(fitting.runs(with_batch(run.job, with + 1)));
}

TEST(Fitting, ObeysTheLimitOfTheHost) {
  Simulated run("alexnet", 8);
  run.config.lms.options.recompute = lms::Recomputation::off;
  run.backend.memory.device = std::size_t{1500} << 20U;
  const std::int64_t roomy = largest_batch(run.job, run.context(), true);
  run.backend.memory.host = std::size_t{100} << 20U;
  const std::int64_t tight = largest_batch(run.job, run.context(), true);
  EXPECT_LT(tight, roomy);
  EXPECT_GE(tight, largest_batch(run.job, run.context(), false));
  EXPECT_TRUE(Fitting(run.job, run.context(), true).runs(with_batch(run.job, tight)));
}

TEST(Fitting, ObeysTheLimitOfTheFlags) {
  Simulated run("alexnet", 8);
  run.config.lms.limit = 1500;
  const std::int64_t with = largest_batch(run.job, run.context(), true);
  EXPECT_LT(with, largest_batch(run.job, run.context(), false));
  EXPECT_TRUE(Fitting(run.job, run.context(), true).runs(with_batch(run.job, with)));
}

}  // namespace
}  // namespace cnn::bench
