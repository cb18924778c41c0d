#include "bench/run/session.h"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>

#include "bench/flags/flags.h"
#include "bench/machine/cpu_backend.h"
#include "runtime/cpu/device.h"
#include "runtime/error.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Words = std::vector<std::string>;

// A CPU that notes what it is asked for.
class NotingDevice final : public Device {
 public:
  NotingDevice(CpuOptions options, std::vector<std::size_t>& device, std::vector<std::size_t>& host)
      : inner_(std::move(options)), device_(device), host_(host) {}
  std::string name() const override { return inner_.name(); }
  std::size_t memory_bytes() const override { return inner_.memory_bytes(); }
  std::unique_ptr<Stream> make_stream(Lane lane) override { return inner_.make_stream(lane); }
  std::unique_ptr<Event> make_event() override { return inner_.make_event(); }
  Buffer allocate(std::size_t bytes) override {
    device_.push_back(bytes);
    return inner_.allocate(bytes);
  }
  Buffer allocate_host(std::size_t bytes) override {
    host_.push_back(bytes);
    return inner_.allocate_host(bytes);
  }

 private:
  CpuDevice inner_;
  std::vector<std::size_t>& device_;
  std::vector<std::size_t>& host_;
};

// ResNet-20 at batch 4 on a device that has so many bytes, guard pages around them, and gives no
// more; its host has the rest of the memory.
class DeviceRun {
 public:
  DeviceRun(const Words& more, std::size_t bytes, CopyJitter jitter = {}) {
    Words words{"--device=cpu",          "--data_name=cifar10",    "--model=resnet20",
                "--batch_size=4",        "--num_warmup_batches=0", "--num_batches=9",
                "--lms_size_threshold=4"};
    words.insert(words.end(), more.begin(), more.end());
    config_ = parse_flags(words, {}).config;
    backend_ = make_backend(config_, std::array{cpu_backend()});
    backend_.host_memory_limit = backend_.memory_limit;
    backend_.memory_limit = bytes;
    backend_.memory_text = "a device of the test";
    CpuOptions options{.memory_limit = bytes, .copy_jitter = jitter, .compute_on_caller = true};
    backend_.device = std::make_unique<NotingDevice>(std::move(options), device_, host_);
    job_ = make_job(config_, backend_);
    session_.emplace(job_, backend_);
  }

  Session& session() { return *session_; }
  const std::vector<std::size_t>& of_device() const { return device_; }
  const std::vector<std::size_t>& of_host() const { return host_; }

  // From the newest checkpoint, if there is one: returns the total losses.
  std::vector<double> train(std::int64_t steps) {
    session_->allocate();
    const std::string& folder = config_.checkpoint.train_dir.value_or("");
    const auto restored = folder.empty() ? std::nullopt : session_->restore(folder);
    const std::int64_t first = restored ? restored->global_step : 0;
    session_->start(first);
    std::vector<double> losses;
    for (std::int64_t step = first; step < first + steps; ++step) {
      losses.push_back(job_.total_loss(session_->main().run(step, 0.1)));
    }
    if (!folder.empty()) {
      session_->save(first + steps);
    }
    return losses;
  }
  double evaluate() { return session_->evaluation().run(0, 0).base_loss; }

 private:
  Config config_;
  std::vector<std::size_t> device_, host_;
  Backend backend_;
  Job job_;
  std::optional<Session> session_;
};

constexpr std::size_t plenty = std::size_t{1} << 30U;
const Words evaluating{"--eval_during_training_every_n_steps=2", "--eval_batch_size=2",
                       "--num_eval_batches=1"};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Too few for a step without --lms.
std::size_t some() { return DeviceRun({}, plenty).session().memory().total() / 8 * 7; }

std::size_t sum(const std::vector<std::size_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::size_t{0});
}

struct Trained {
  std::vector<double> losses;  // of two steps, and of two more after a resume
  std::vector<double> evaluated;
};

// Trains, evaluates, saves, resumes and goes on, each time on a device of exactly so many bytes.
Trained train_and_resume(const Words& more, std::size_t bytes) {
  const tests::TemporaryFolder folder;
  const Words words = with(with(evaluating, more), {"--train_dir=" + folder.path().string()});
  Trained trained;
  for (int part = 0; part < 2; ++part) {
    DeviceRun run(words, bytes);
    const std::vector<double> losses = run.train(2);
    trained.losses.insert(trained.losses.end(), losses.begin(), losses.end());
    trained.evaluated.push_back(run.evaluate());
    EXPECT_LE(run.session().measured_peak_bytes(), bytes);
    EXPECT_LE(sum(run.of_device()), bytes);
  }
  return trained;
}

TEST(Session, TakesExactlyTheBytesThatItSaysAndNotOneLess) {
  const std::size_t bytes = DeviceRun(evaluating, plenty).session().memory().total();
  const Trained whole = train_and_resume({}, plenty);
  const Trained exact = train_and_resume({}, bytes);
  EXPECT_EQ(exact.losses, whole.losses);
  EXPECT_EQ(exact.evaluated, whole.evaluated);
  EXPECT_THAT([&] { DeviceRun(evaluating, bytes - 64); },
              ThrowsMessage<DoesNotFit>(
                  AllOf(HasSubstr("OOM when allocating tensor"), HasSubstr("--lms trains"))));
}

TEST(Session, RunsThePlanOfAFileInExactlyTheBytesThatItWasMadeFor) {
  const tests::TemporaryFolder folder;
  const std::string file = folder / "plan.json";
  const std::size_t need = DeviceRun(evaluating, plenty).session().memory().total();
  const Words lms = with(evaluating, {"--lms"});
  DeviceRun planned(with(lms, {"--lms_plan_out=" + file}), need / 2);
  const std::size_t bytes = planned.session().memory().total();
  EXPECT_LE(bytes, need / 2);
  const Words loaded = {"--lms", "--lms_plan_file=" + file};
  const Trained exact = train_and_resume(loaded, bytes);
  const Trained whole = train_and_resume({}, plenty);
  EXPECT_EQ(exact.losses, whole.losses);
  EXPECT_EQ(exact.evaluated, whole.evaluated);
  EXPECT_THAT(
      [&] { DeviceRun(with(evaluating, loaded), bytes - 64); },
      ThrowsMessage<DoesNotFit>(AllOf(
          HasSubstr("OOM when allocating tensor"), HasSubstr("the plan of " + file + " needs "),
          HasSubstr(std::to_string(bytes)), HasSubstr("--lms_plan_out"))));
}

TEST(Session, HasOneArenaOnTheHostForAllItsPrograms) {
  DeviceRun run(with(evaluating, {"--lms", "--lms_policy=tflms1"}), some());
  EXPECT_TRUE(run.of_host().empty() && run.of_device().empty()) << "planned, not allocated";
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
  EXPECT_THAT([&] { DeviceRun(words, some()); },
              ThrowsMessage<DoesNotFit>(AllOf(HasSubstr("the plan of tflms1 moves "),
                                              HasSubstr("raise --lms_host_limit"),
                                              HasSubstr("0.00 GiB (1048576 bytes)"))));
}

TEST(Session, ComputesTheSameBitsHoweverLongCopiesAreDelayed) {
  const std::vector<double> whole = DeviceRun({}, plenty).train(2);
  for (const char* policy : {"planned", "tflms1", "window"}) {
    const Words words{"--lms", "--lms_policy=" + std::string(policy)};
    for (const unsigned seed : {1U, 2U}) {
      DeviceRun run(words, some(), {.longest = std::chrono::microseconds(500), .seed = seed});
      EXPECT_EQ(run.train(2), whole) << policy << " " << seed;
    }
  }
}

TEST(Session, LooksAfterItsMemoryWhereAsked) {
  const std::vector<double> whole = DeviceRun({}, plenty).train(2);
  for (const char* policy : {"planned", "tflms1", "caffe", "vdnn_all", "recompute"}) {
    const Words words{"--lms", "--lms_verify", "--lms_policy=" + std::string(policy)};
    EXPECT_EQ(DeviceRun(words, some()).train(2), whole) << policy;
  }
}

}  // namespace
}  // namespace cnn::bench
