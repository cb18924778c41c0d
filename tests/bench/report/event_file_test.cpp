#include "bench/report/event_file.h"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "data/png_encoder.h"
#include "runtime/error.h"
#include "tests/support/error_of.h"
#include "tests/support/events.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using tests::ReadEvent;

constexpr std::chrono::system_clock::time_point second_1000 =
    std::chrono::system_clock::time_point(std::chrono::seconds(1000));

std::vector<double> doubles_in(const std::string& bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(double));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

TEST(EventFile, StartsWithTheVersionOfItsFormat) {
  const tests::TemporaryFolder folder;
  const EventFile file("--train_dir", folder / "a/b", second_1000);
  EXPECT_THAT(file.path(), HasSubstr(folder / "a/b/events.out.tfevents.0000001000."));
  const std::vector<ReadEvent> events = tests::read_events(file.path());
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[0].wall_time, 1000);
}

TEST(EventFile, HasEveryScalarUnderItsTagAndStep) {
  const tests::TemporaryFolder folder;
  EventFile file("--train_dir", folder / ".");
  Summary summary;
  summary.scalar("total_loss", 2.5);
  summary.scalar("rate", -1e30);
  file.summary(7, summary);
  const std::vector<ReadEvent> events = tests::read_events(file.path());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].step, 7);
  EXPECT_EQ(events[1].values.at("total_loss").scalar, 2.5F);
  EXPECT_EQ(events[1].values.at("rate").scalar, -1e30F);
}

TEST(EventFile, SaysWithWhichStepATrainingStarts) {
  const tests::TemporaryFolder folder;
  EventFile file("--train_dir", folder / ".");
  file.session_starts(21);
  const ReadEvent event = tests::read_events(file.path()).at(1);
  EXPECT_EQ(event.step, 21);
  EXPECT_EQ(event.session_log, std::string("\x08\x01"));  // encodes the status START
}

TEST(EventFile, SortsBehindTheFilesThatAreThere) {
  const tests::TemporaryFolder folder;
  const std::string first = EventFile("--train_dir", folder / ".", second_1000).path();
  const std::string second = EventFile("--train_dir", folder / ".", second_1000).path();
  folder.write("events.out.tfevents.0000005000.elsewhere", "");
  const std::string third = EventFile("--train_dir", folder / ".", second_1000).path();
  EXPECT_THAT(second, HasSubstr("tfevents.0000001001."));
  EXPECT_THAT(third, HasSubstr("tfevents.0000005001."));
  EXPECT_EQ(tests::event_files(folder.path()).size(), 4U);
}

TEST(EventFile, NamesFlagAndFolderThatCannotBeWritten) {
  const tests::TemporaryFolder folder;
  folder.write("file", "x");
  EXPECT_THAT(tests::error_of([&] { EventFile("--eval_dir", folder / "file/below"); }),
              AllOf(HasSubstr("--eval_dir: cannot write TensorBoard events to "),
                    HasSubstr("file/below: Not a directory")));
  EXPECT_THAT(tests::error_of([&] { EventFile("--eval_dir", folder / "file"); }),
              HasSubstr("Not a directory"));
}

// A limit on the file size stands for a full disk: the system writes a part of the data.
TEST(EventFile, KeepsWholeEventsOnlyWhereTheDiskIsFull) {
  const tests::TemporaryFolder folder;
  EventFile file("--train_dir", folder / ".");
  Summary small;
  small.scalar("loss", 1);
  file.summary(1, small);
  const std::uintmax_t size = std::filesystem::file_size(file.path());
  Summary large;
  large.scalar(std::string(10000, 'x'), 1);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = before;
  limit.rlim_cur = size + 100;
  setrlimit(RLIMIT_FSIZE, &limit);
  const std::string problem = tests::error_of([&] { file.summary(2, large); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(problem, HasSubstr("--train_dir: cannot write TensorBoard events to " + file.path()));
  EXPECT_EQ(std::filesystem::file_size(file.path()), size);
  file.summary(3, small);
  EXPECT_EQ(tests::read_events(file.path()).back().step, 3);
}

TEST(EventFile, HoldsHistogramsAndImages) {
  const tests::TemporaryFolder folder;
  EventFile file("--train_dir", folder / ".");
  Histogram histogram;
  histogram.add(2);
  histogram.add(4);
  Summary summary;
  summary.histogram("w", histogram);
  const std::vector<std::uint8_t> pixels{1, 2, 3, 4, 5, 6};
  summary.image("i", 1, 2, data::encode_png(1, 2, pixels));
  file.summary(1, summary);
  const ReadEvent event = tests::read_events(file.path()).at(1);
  const auto fields = tests::fields_of(event.values.at("w").histogram);
  EXPECT_EQ(tests::number_in<double>(tests::field(fields, 1), 0), 2);
  EXPECT_EQ(tests::number_in<double>(tests::field(fields, 2), 0), 4);
  EXPECT_EQ(tests::number_in<double>(tests::field(fields, 3), 0), 2);
  EXPECT_EQ(tests::number_in<double>(tests::field(fields, 4), 0), 6);
  EXPECT_EQ(tests::number_in<double>(tests::field(fields, 5), 0), 20);
  EXPECT_EQ(doubles_in(tests::field(fields, 6)), histogram.buckets().limits);
  EXPECT_EQ(doubles_in(tests::field(fields, 7)), histogram.buckets().counts);
  const auto image = tests::fields_of(event.values.at("i").image);
  EXPECT_EQ(tests::number_in<std::int64_t>(tests::field(image, 2), 0), 2);
  EXPECT_THAT(tests::field(image, 4), HasSubstr("PNG\r\n"));
}

}  // namespace
}  // namespace cnn::bench
