#include "bench/session/memory_refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "bench/session/session.h"
#include "runtime/error.h"
#include "tests/bench/session/device_run.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using tests::with;
using tests::Words;

Words resnet20(const Words& more) {
  return with({"--data_name=cifar10", "--model=resnet20"}, more);
}

// Returns the bytes of a device that has room to train with a batch of 8.
std::size_t small_device() {
  constexpr std::size_t plenty = std::size_t{1} << 30U;
  static const std::size_t bytes =
      tests::DeviceRun(resnet20({"--batch_size=8"}), plenty).session().memory().total();
  return bytes;
}

std::string refusal_of(const Words& flags) {
  return tests::error_of([&] { tests::DeviceRun(resnet20(flags), small_device()); });
}

// Returns the number behind the text.
std::string number_behind(const std::string& refusal, const std::string& text) {
  const std::size_t at = refusal.find(text);
  if (at == std::string::npos) {
    return "no \"" + text + "\" in: " + refusal;
  }
  const std::string behind = refusal.substr(at + text.size());
  return behind.substr(0, behind.find_first_not_of("0123456789"));
}

TEST(MemoryRefusal, NamesTheBatchOfAnEvaluationAlone) {
  const std::string refusal =
      refusal_of({"--eval", "--train_dir=unread", "--eval_batch_size=5000"});
  EXPECT_THAT(refusal, AllOf(HasSubstr("OOM when allocating tensor with shape[5000,"),
                             HasSubstr("\nresnet20 with --eval_batch_size=5000 needs "),
                             HasSubstr(" are free on "), Not(HasSubstr("--batch_size")),
                             Not(HasSubstr("--lms"))));
  const std::string largest = number_behind(refusal, "the largest --eval_batch_size that fits is ");
  EXPECT_EQ(refusal_of({"--eval", "--train_dir=unread", "--eval_batch_size=" + largest}), "");
  EXPECT_THAT(refusal_of({"--eval", "--train_dir=unread", "--batch_size=5000"}),
              HasSubstr("\nresnet20 with --batch_size=5000 needs "))
      << "its batch is that of the training";
}

TEST(MemoryRefusal, NamesTheLargerOfTrainingAndEvaluation) {
  const Words evaluating{"--eval_during_training_every_n_steps=2", "--batch_size=4"};
  const std::string refusal = refusal_of(with(evaluating, {"--eval_batch_size=5000"}));
  EXPECT_THAT(refusal, AllOf(HasSubstr("OOM when allocating tensor with shape[5000,"),
                             HasSubstr("\nresnet20 with --eval_batch_size=5000 needs "),
                             Not(HasSubstr("--batch_size")), Not(HasSubstr("--lms"))));
  const std::string largest = number_behind(refusal, "the largest --eval_batch_size that fits is ");
  EXPECT_EQ(refusal_of(with(evaluating, {"--eval_batch_size=" + largest})), "");
  EXPECT_THAT(refusal_of({"--eval_during_training_every_n_steps=2", "--batch_size=1000",
                          "--eval_batch_size=4"}),
              AllOf(HasSubstr("\nresnet20 with --batch_size=1000 needs "),
                    HasSubstr("; --lms trains larger ones")));
}

TEST(BatchFlag, IsThatOfTheLargestProgram) {
  Config config;
  Job job;
  job.config = &config;
  job.batch.per_device = 8;
  job.eval_batch.per_device = 16;
  Programs programs;
  EXPECT_EQ(batch_flag(job, programs), "--batch_size=8") << "of programs that run already";
  programs.evaluation.emplace().plan.memory.device_bytes = 100;
  EXPECT_EQ(batch_flag(job, programs), "--batch_size=16") << "no batch of its own";
  config.eval.batch = 16;
  EXPECT_EQ(batch_flag(job, programs), "--eval_batch_size=16");
  programs.main.emplace().plan.memory.device_bytes = 99;
  EXPECT_EQ(batch_flag(job, programs), "--eval_batch_size=16");
  programs.main->plan.memory.device_bytes = 100;
  EXPECT_EQ(batch_flag(job, programs), "--batch_size=8");
}

}  // namespace
}  // namespace cnn::bench
