#include "bench/session/session.h"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <optional>

#include "runtime/error.h"
#include "runtime/memory_plan.h"
#include "tests/bench/session/device_run.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using tests::with;
using tests::Words;

// ResNet-20 at batch 4 on an emulated device.
class Resnet20Run : public tests::DeviceRun {
 public:
  Resnet20Run(const Words& more, std::size_t bytes, const CopyJitter& jitter = {})
      : tests::DeviceRun(with({"--data_name=cifar10", "--model=resnet20", "--batch_size=4",
                               "--lms_size_threshold=4"},
                              more),
                         bytes, jitter) {}
};

constexpr std::size_t plenty = std::size_t{1} << 30U;
const Words evaluating{"--eval_during_training_every_n_steps=2", "--eval_batch_size=2",
                       "--num_eval_batches=1"};

// Returns fewer bytes than a step without --lms needs.
std::size_t some() { return Resnet20Run({}, plenty).session().memory().total() / 8 * 7; }

std::size_t sum(const std::vector<std::size_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::size_t{0});
}

struct TrainedAndResumed {
  std::vector<double> losses;  // of two steps, and of two more after resuming
  std::vector<double> evaluated;
};

// Trains, evaluates, saves and resumes, each time on a device of exactly this many bytes.
TrainedAndResumed train_and_resume(const Words& more, std::size_t bytes) {
  const tests::TemporaryFolder folder;
  const Words words = with(with(evaluating, more), {"--train_dir=" + folder.path().string()});
  TrainedAndResumed trained;
  for (int part = 0; part < 2; ++part) {
    Resnet20Run run(words, bytes);
    const std::vector<double> losses = run.train(2);
    trained.losses.insert(trained.losses.end(), losses.begin(), losses.end());
    trained.evaluated.push_back(run.evaluate());
    EXPECT_LE(run.session().measured_peak_bytes(), bytes);
    EXPECT_LE(sum(run.of_device()), bytes);
  }
  return trained;
}

TEST(Session, TakesExactlyTheBytesThatItSaysAndNotOneLess) {
  const std::size_t bytes = Resnet20Run(evaluating, plenty).session().memory().total();
  const TrainedAndResumed whole = train_and_resume({}, plenty);
  const TrainedAndResumed exact = train_and_resume({}, bytes);
  EXPECT_EQ(exact.losses, whole.losses);
  EXPECT_EQ(exact.evaluated, whole.evaluated);
  EXPECT_THAT([&] { Resnet20Run(evaluating, bytes - 64); },
              ThrowsMessage<DoesNotFit>(
                  AllOf(HasSubstr("OOM when allocating tensor"), HasSubstr("--lms trains"))));
}

TEST(Session, RunsThePlanOfAFileInExactlyTheBytesThatItWasMadeFor) {
  const tests::TemporaryFolder folder;
  const std::string file = folder / "plan.json";
  const std::size_t need = Resnet20Run(evaluating, plenty).session().memory().total();
  const Words lms = with(evaluating, {"--lms"});
  Resnet20Run planned(with(lms, {"--lms_plan_out=" + file}), need / 2);
  const std::size_t bytes = planned.session().memory().total();
  EXPECT_LE(bytes, need / 2);
  const Words loaded = {"--lms", "--lms_plan_file=" + file};
  const TrainedAndResumed exact = train_and_resume(loaded, bytes);
  const TrainedAndResumed whole = train_and_resume({}, plenty);
  EXPECT_EQ(exact.losses, whole.losses);
  EXPECT_EQ(exact.evaluated, whole.evaluated);
  EXPECT_THAT(
      [&] { Resnet20Run(with(evaluating, loaded), bytes - 64); },
      ThrowsMessage<DoesNotFit>(AllOf(
          HasSubstr("OOM when allocating tensor"), HasSubstr("the plan of " + file + " needs "),
          HasSubstr(std::to_string(bytes)), HasSubstr("--lms_plan_out"))));
}

TEST(Session, TellsTheBytesOfThePlanThatReplacedALargerOne) {
  const Words lms = with(evaluating, {"--lms"});
  const std::size_t bytes = some();
  Resnet20Run run(lms, bytes), less(lms, bytes / 8 * 7);
  Session& session = run.session();
  run.train(1);
  const std::size_t first = session.measured_step_peak_bytes();
  EXPECT_EQ(session.lms()->peak, first);
  EXPECT_EQ(session.replaced_peak_bytes(), std::nullopt);
  session.follow(less.session().plan_text());
  session.main().run(1, 0.1);
  EXPECT_LT(session.lms()->peak, first);
  EXPECT_EQ(session.measured_step_peak_bytes(), session.lms()->peak);
  EXPECT_EQ(session.measured_peak_bytes(), session.memory().total());
  EXPECT_EQ(session.plan_json().at("arena_bytes"), session.memory().total());
  EXPECT_EQ(session.memory().lower_bound(), less.session().memory().lower_bound());
  EXPECT_EQ(session.replaced_peak_bytes(), first);
}

TEST(Session, HasOneArenaOnTheHostForAllItsPrograms) {
  Resnet20Run run(with(evaluating, {"--lms", "--lms_policy=tflms1"}), some());
  EXPECT_TRUE(run.of_host().empty() && run.of_device().empty())
      << "the session is planned but not allocated";
  const std::size_t planned = run.session().plan().memory.host_bytes;
  EXPECT_GT(planned, std::size_t{1} << 19U);
  run.train(1);
  run.evaluate();
  std::size_t large = 0;
  for (const std::size_t bytes : run.of_host()) {
    large += bytes >= planned ? 1 : 0;
  }
  EXPECT_EQ(large, 1U);
}

TEST(Session, IsRefusedBeforeAnythingIsAllocatedWhereTheHostHasTooLittle) {
  const Words words{"--lms", "--lms_policy=tflms1", "--lms_host_limit=1"};
  EXPECT_THAT([&] { Resnet20Run(words, some()); },
              ThrowsMessage<DoesNotFit>(AllOf(HasSubstr("the plan of tflms1 moves "),
                                              HasSubstr("raise --lms_host_limit"),
                                              HasSubstr("1.00 MiB (1048576 bytes)"))));
}

TEST(Session, ComputesTheSameBitsHoweverLongCopiesAreDelayed) {
  const std::vector<double> whole = Resnet20Run({}, plenty).train(2);
  for (const char* policy : {"planned", "tflms1", "window"}) {
    const Words words{"--lms", "--lms_policy=" + std::string(policy)};
    for (const unsigned seed : {1U, 2U}) {
      Resnet20Run run(words, some(), {.longest = std::chrono::microseconds(500), .seed = seed});
      EXPECT_EQ(run.train(2), whole) << policy << " " << seed;
    }
  }
}

// MobileNet needs 70 MiB, or 60 MiB with updates in parts of 1 MiB. A budget of 64 MiB allows parts
// of a 32nd, which is 2 MiB.
TEST(Session, UpdatesVariablesInSmallPartsBeforeAnythingMoves) {
  const Words words{"--data_name=imagenet", "--model=mobilenet", "--batch_size=2",
                    "--image_size=64", "--lms"};
  const std::size_t budget = std::size_t{64} << 20U;
  const tests::TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  Resnet20Run run(with(words, {"--lms_plan_out=" + plan}), budget);
  EXPECT_FALSE(run.session().lms()->necessary);
  EXPECT_LE(run.session().lms()->need, budget);
  const std::vector<double> losses = run.train(2);
  EXPECT_LE(run.session().measured_peak_bytes(), budget);
  EXPECT_EQ(Resnet20Run(words, std::size_t{1} << 30U).train(2), losses);
  Resnet20Run again(with(words, {"--lms_plan_file=" + plan}), budget);
  EXPECT_EQ(again.session().lms()->need, run.session().lms()->need)
      << "the file stores the parts of updates";
  EXPECT_EQ(again.train(2), losses);
}

// Returns a run in the smallest of a few budgets below the need in which it fits. How little a
// policy can do with depends on the library of the convolutions.
std::optional<Resnet20Run> run_in_little(const Words& words) {
  const std::size_t need = Resnet20Run({}, plenty).session().memory().total();
  for (const std::size_t left_out : {need / 8, need / 16, need / 32, alignment}) {
    try {
      return std::optional<Resnet20Run>(std::in_place, words, need - left_out);
    } catch (const DoesNotFit&) {  // not in so little
    }
  }
  return std::nullopt;
}

TEST(Session, LooksAfterItsMemoryWhereAsked) {
  const std::vector<double> whole = Resnet20Run({}, plenty).train(2);
  for (const char* policy : {"planned", "tflms1", "caffe", "vdnn_all", "recompute"}) {
    SCOPED_TRACE(policy);
    std::optional<Resnet20Run> run =
        run_in_little({"--lms", "--lms_verify", "--lms_policy=" + std::string(policy)});
    ASSERT_TRUE(run.has_value());
    EXPECT_TRUE(run->session().lms()->necessary);
    EXPECT_EQ(run->train(2), whole);
  }
}

}  // namespace
}  // namespace cnn::bench
