#include "bench/report/event_file.h"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <sys/resource.h>

#include "bench/report/graph_def.h"
#include "data/png_encoder.h"
#include "layers/activation.h"
#include "runtime/error.h"
#include "tests/support/error_of.h"
#include "tests/support/events.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::ElementsAre;
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
  EXPECT_EQ(event.session_log, std::string("\x08\x01"));  // status: START
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

// A limit of file sizes stands for a full disk: the system writes a part of what is asked for.
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

TEST(Histogram, CountsValuesInBucketsThatGrowByATenth) {
  Histogram histogram;
  for (const double value : {1.0, 1.0, -3.0, 0.0, 1e300}) {
    histogram.add(value);
  }
  histogram.add(std::numeric_limits<double>::quiet_NaN());
  histogram.add(-std::numeric_limits<double>::infinity());
  EXPECT_EQ(histogram.count(), 5);
  EXPECT_EQ(histogram.not_finite(), 2);
  EXPECT_EQ(histogram.min(), -3);
  EXPECT_EQ(histogram.max(), 1e300);
  const Histogram::Buckets buckets = histogram.buckets();
  double below = -std::numeric_limits<double>::max();
  std::vector<std::string> seen;
  for (std::size_t i = 0; i < buckets.limits.size(); ++i) {
    const double limit = buckets.limits[i];
    ASSERT_LT(below, limit);
    if (buckets.counts[i] > 0) {
      for (const double value : {1.0, -3.0, 0.0, 1e300}) {
        if (below <= value && value < limit) {
          seen.push_back(testing::PrintToString(value) + " x " +
                         testing::PrintToString(buckets.counts[i]));
          if (value == 1.0) {
            EXPECT_NEAR(limit / below, 1.1, 1e-9);
          }
        }
      }
    }
    below = limit;
  }
  EXPECT_THAT(seen, ElementsAre("-3 x 1", "0 x 1", "1 x 2", "1e+300 x 1"));
}

TEST(Histogram, MergesToWhatOneOfAllValuesHas) {
  Histogram a, b, all;
  for (const double value : {0.5, -20.0, 3e-5}) {
    a.add(value);
    all.add(value);
  }
  for (const double value : {7.0, 0.0, 0.0}) {
    b.add(value);
    all.add(value);
  }
  a.merge(b);
  a.merge(Histogram());
  EXPECT_EQ(a.buckets().limits, all.buckets().limits);
  EXPECT_EQ(a.buckets().counts, all.buckets().counts);
  EXPECT_EQ(a.min(), all.min());
  EXPECT_EQ(a.max(), all.max());
  EXPECT_EQ(a.sum_of_squares(), all.sum_of_squares());
  a.remove_zeros(2);
  EXPECT_EQ(a.count(), 4);
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

TEST(GraphDef, HasEveryOperationVariableAndEdge) {
  Graph graph;
  const Value image = graph.input("images", {Shape{2, 3}, DataType::f32});
  const Value result = layers::relu(layers::relu(image));
  graph.output("result", result);
  const std::vector<std::byte> bytes = graph_def(graph);
  const auto fields = tests::fields_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::vector<std::string> nodes;
  for (auto [node, end] = fields.equal_range(1); node != end; ++node) {
    const auto inner = tests::fields_of(node->second);
    nodes.push_back(tests::field(inner, 1) + " = " + tests::field(inner, 2) + " of " +
                    tests::field(inner, 3));
  }
  EXPECT_THAT(nodes, ElementsAre("images = Placeholder of ", "relu#0 = relu of images",
                                 "relu#1 = relu of relu#0"));
}

}  // namespace
}  // namespace cnn::bench
