#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/program/program.h"
#include "tests/support/events.h"

namespace cnn::tests {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

Words summary_words(const std::string& train_dir, const Words& more) {
  Words flags{"--device=cpu",        "--data_name=mnist",      "--model=lenet",
              "--batch_size=8",      "--num_warmup_batches=2", "--train_dir=" + train_dir,
              "--nomeasure_ceilings"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

std::vector<ReadEvent> events_in(const std::string& folder) {
  std::vector<ReadEvent> events;
  for (const std::string& file : event_files(folder)) {
    for (ReadEvent& event : read_events(file)) {
      events.push_back(std::move(event));
    }
  }
  return events;
}

std::vector<std::int64_t> steps_with(const std::vector<ReadEvent>& events, const std::string& tag) {
  std::vector<std::int64_t> steps;
  for (const ReadEvent& event : events) {
    if (event.values.contains(tag)) {
      steps.push_back(event.step);
    }
  }
  return steps;
}

std::vector<std::string> tags_of(const ReadEvent& event) {
  std::vector<std::string> tags;
  for (const auto& [tag, value] : event.values) {
    tags.push_back(tag);
  }
  return tags;
}

double sum_of(const EventValue& value) {
  return number_in<double>(field(fields_of(value.histogram), 4), 0);
}
double count_of(const EventValue& value) {
  return number_in<double>(field(fields_of(value.histogram), 3), 0);
}

TEST(Summaries, HaveScalarsAtEachStepThatTheFlagDivides) {
  const TemporaryFolder folder;
  const Finished run = run_program(summary_words(
      folder / "t",
      {"--num_batches=6", "--summary_verbosity=1", "--save_summaries_steps=2",
       "--print_training_accuracy", "--display_every=1", "--init_learning_rate=0.0009765625"}));
  ASSERT_EQ(run.status, 0) << run.err;
  const std::vector<ReadEvent> events = events_in(folder / "t");
  // The warm-up has steps -1 and 0, so the global step is larger by two.
  EXPECT_THAT(steps_with(events, "total_loss"), ElementsAre(2, 4, 6, 8));
  const ReadEvent& last = events.back();
  EXPECT_THAT(tags_of(last), ElementsAre("arena_peak_bytes", "images_per_sec", "input_wait_seconds",
                                         "learning_rate", "process_peak_bytes", "top_1_accuracy",
                                         "top_5_accuracy", "total_loss"));
  EXPECT_EQ(last.values.at("learning_rate").scalar, 0.0009765625F);
  EXPECT_GT(last.values.at("images_per_sec").scalar, 0);
  EXPECT_GT(last.values.at("arena_peak_bytes").scalar, 1e5);
  const std::string printed = words_of(run.step_lines().back()).at(8);
  EXPECT_NEAR(last.values.at("total_loss").scalar, std::stod(printed), 0.0006);
  EXPECT_THAT(events[1].graph, AllOf(HasSubstr("v/cg/conv0/conv2d/kernel"),
                                     AnyOf(HasSubstr("max_pool#2"), HasSubstr("max_pool#3"))));
}

TEST(Summaries, HaveHistogramsFromVerbosityTwoOn) {
  const TemporaryFolder folder;
  const auto last_event = [&](const char* verbosity) {
    const std::string train_dir = folder / verbosity;
    const Finished run = run_program(
        summary_words(train_dir, {"--num_batches=1", "--save_summaries_steps=1", "--weight_decay=0",
                                  std::string("--summary_verbosity=") + verbosity}));
    EXPECT_EQ(run.status, 0) << run.err;
    return events_in(train_dir).back();
  };
  const ReadEvent two = last_event("2"), three = last_event("3");
  EXPECT_THAT(tags_of(two), AllOf(Contains("log_gradients"), Not(Contains(HasSubstr("v/cg/")))));
  EXPECT_THAT(tags_of(three),
              AllOf(Contains("log_gradients"), Contains("v/cg/conv0/conv2d/kernel"),
                    Contains("v/cg/conv0/conv2d/kernel/gradients"), Contains("images/image/2")));
  // The loss has the same bits at both verbosities, so observing tensors changes no step.
  EXPECT_EQ(two.values.at("total_loss").scalar, three.values.at("total_loss").scalar);
  EXPECT_EQ(count_of(three.values.at("v/cg/conv0/conv2d/kernel")), 5 * 5 * 32);
  EXPECT_EQ(count_of(three.values.at("v/cg/conv0/conv2d/kernel/gradients")), 5 * 5 * 32);
  EXPECT_GT(count_of(two.values.at("log_gradients")), 1000);
}

TEST(Summaries, HaveTheGradientByWhichAVariableChanges) {
  const TemporaryFolder folder;
  const std::string kernel = "v/cg/conv0/conv2d/kernel", train_dir = folder / "t";
  const Finished run = run_program(summary_words(
      train_dir, {"--num_batches=2", "--num_warmup_batches=0", "--save_summaries_steps=1",
                  "--summary_verbosity=3", "--optimizer=sgd", "--init_learning_rate=0.5",
                  "--weight_decay=0"}));
  ASSERT_EQ(run.status, 0) << run.err;
  const std::vector<ReadEvent> events = events_in(train_dir);
  const ReadEvent &first = events.at(events.size() - 2), &second = events.back();
  const double change = sum_of(second.values.at(kernel)) - sum_of(first.values.at(kernel));
  const double gradient = sum_of(second.values.at(kernel + "/gradients"));
  EXPECT_NEAR(change, -0.5 * gradient, 1e-5 + 1e-3 * std::abs(gradient));
}

TEST(Summaries, SayWhereAResumedRunBegan) {
  const TemporaryFolder folder;
  const Words summaries{"--summary_verbosity=1", "--save_summaries_steps=1",
                        "--num_warmup_batches=0"};
  for (const char* batches : {"--num_batches=2", "--num_batches=4"}) {
    Words words = summary_words(folder / "t", summaries);
    words.emplace_back(batches);
    const Finished run = run_program(words);
    ASSERT_EQ(run.status, 0) << run.err;
  }
  const std::vector<ReadEvent> events = events_in(folder / "t");
  std::vector<std::int64_t> starts;
  for (const ReadEvent& event : events) {
    if (!event.session_log.empty()) {
      starts.push_back(event.step);
    }
  }
  EXPECT_EQ(event_files(folder / "t").size(), 2U);
  EXPECT_THAT(starts, ElementsAre(1, 3));
  EXPECT_THAT(steps_with(events, "total_loss"), ElementsAre(1, 2, 3, 4));
}

TEST(Summaries, AreWholeIfASignalEndsTheRun) {
  const TemporaryFolder folder;
  const std::string train_dir = folder / "t";
  const Finished run = run_and_signal(
      summary_words(train_dir, {"--num_batches=1000000", "--summary_verbosity=1",
                                "--save_summaries_steps=1", "--display_every=1"}),
      [](const Finished& so_far) { return so_far.out.find("\n20\t") != std::string::npos; },
      {SIGINT});
  EXPECT_EQ(run.status, 128 + SIGINT) << run.err;
  const auto steps = static_cast<std::int64_t>(run.step_lines().size());
  const std::vector<std::int64_t> written = steps_with(events_in(train_dir), "total_loss");
  ASSERT_FALSE(written.empty());
  EXPECT_EQ(written.back(), steps + 2);
}

TEST(Summaries, AreWrittenByTheFirstRankOnly) {
  const TemporaryFolder folder;
  Words words = summary_words(folder / "t", {"--num_batches=2", "--summary_verbosity=3",
                                             "--save_summaries_steps=1", "--num_gpus=2"});
  const Finished run = run_program(words);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(event_files(folder / "t").size(), 1U);
  EXPECT_THAT(tags_of(events_in(folder / "t").back()),
              Contains("v/cg/conv0/conv2d/kernel/gradients"));
}

TEST(Summaries, PutEvaluationsInTheFolderOfEvaluations) {
  const TemporaryFolder folder;
  const std::string train_dir = folder / "t", eval_dir = folder / "e";
  ASSERT_EQ(run_program(summary_words(train_dir, {"--num_batches=3"})).status, 0);
  EXPECT_TRUE(event_files(train_dir).empty());
  const Finished run = run_program(
      summary_words(train_dir, {"--eval", "--num_batches=2", "--eval_dir=" + eval_dir}));
  ASSERT_EQ(run.status, 0) << run.err;
  const std::vector<ReadEvent> events = events_in(eval_dir);
  EXPECT_THAT(steps_with(events, "eval/Accuracy@1"), ElementsAre(5));
  EXPECT_THAT(steps_with(events, "eval/Accuracy@5"), ElementsAre(5));
  const Finished both = run_program(summary_words(
      folder / "b",
      {"--num_batches=2", "--eval_during_training_every_n_steps=1", "--eval_dir=" + (folder / "f"),
       "--num_eval_batches=1", "--summary_verbosity=1", "--save_summaries_steps=1"}));
  ASSERT_EQ(both.status, 0) << both.err;
  EXPECT_THAT(steps_with(events_in(folder / "f"), "eval/Accuracy@1"), ElementsAre(3, 4));
}

TEST(Summaries, RefuseAFolderOfEvaluationsThatCannotBe) {
  const TemporaryFolder folder;
  folder.write("file", "x");
  const Finished run = run_program(summary_words(
      folder / "t", {"--eval", "--num_batches=2", "--eval_dir=" + (folder / "file")}));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("--eval_dir: cannot write TensorBoard events to " +
                                 (folder / "file") + ": Not a directory"));
  EXPECT_EQ(run.out.find("examples/sec"), std::string::npos);
}

TEST(Summaries, SayWhatTheyLack) {
  const TemporaryFolder folder;
  const Words short_run{"--device=cpu",    "--data_name=mnist",     "--model=lenet",
                        "--num_batches=1", "--summary_verbosity=1", "--nomeasure_ceilings"};
  Words words = short_run;
  words.emplace_back("--train_dir=" + (folder / "t"));
  EXPECT_THAT(run_program(words).err,
              HasSubstr("--summary_verbosity writes nothing without --save_summaries_steps"));
  EXPECT_TRUE(event_files(folder / "t").empty());
  words = short_run;
  words.emplace_back("--save_summaries_steps=1");
  EXPECT_THAT(run_program(words).err, HasSubstr("to --train_dir"));
}

}  // namespace
}  // namespace cnn::tests
