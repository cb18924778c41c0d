#include "bench/all_reduce/table.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace cnn::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

ReduceRow row_of_1000_bytes() {
  return {.bytes = 1000,
          .by = {.algorithm = &allreduce::find("direct")},
          .time = {.least = 1e-6, .median = 2e-6},
          .bound = {1e-6, "memory", allreduce::Source::measured},
          .error = 0};
}

std::vector<std::string> cells_of_line(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> cells;
  for (std::string cell; stream >> cell;) {
    cells.push_back(cell);
  }
  return cells;
}

TEST(ReduceTable, HasTheBandwidthOfTheBufferAndOfALink) {
  const ReduceRow row = row_of_1000_bytes();
  EXPECT_EQ(algorithm_bandwidth(row), 5e8);
  EXPECT_EQ(bus_bandwidth(row, 4), 7.5e8);
  EXPECT_EQ(bus_bandwidth(row, 1), 0) << "nothing travels";
}

TEST(ReduceTable, HasTheDistanceFromTheBound) {
  const ReduceRow row = row_of_1000_bytes();
  EXPECT_EQ(distance(row), 2);
  EXPECT_EQ(bound_seconds(row), 1e-6);
  EXPECT_EQ(bound_text(row), "memory");
}

TEST(ReduceTable, TakesAReductionBelowItsBoundForTheBound) {
  ReduceRow faster = row_of_1000_bytes();  // faster than the limits measured before
  faster.bound.seconds = 5e-6;
  EXPECT_EQ(distance(faster), 1);
  EXPECT_EQ(bound_text(faster), "itself");
  EXPECT_EQ(bound_seconds(faster), 2e-6);
}

TEST(ReduceTable, HasNoDistanceWhereNoLimitWasMeasured) {
  ReduceRow unbounded = row_of_1000_bytes();
  unbounded.bound = {};
  EXPECT_EQ(distance(unbounded), std::nullopt);
  EXPECT_EQ(bound_text(unbounded), "-");
  EXPECT_EQ(table_end({unbounded}, 4), "# avg busbw 0.75  worst distance -  errors 0");
}

TEST(ReduceTable, CallsAnErrorAboveTheToleranceWrong) {
  ReduceRow row = row_of_1000_bytes();
  EXPECT_FALSE(row.wrong());
  row.error = 0.5;
  EXPECT_TRUE(row.wrong());
  EXPECT_THAT(table_line(row, 4), testing::EndsWith("  0.5 WRONG"));
  row.tolerance = 0.5;
  EXPECT_FALSE(row.wrong());
  row.error = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(row.wrong());
  row.error.reset();
  EXPECT_FALSE(row.wrong()) << "not checked";
  EXPECT_THAT(table_line(row, 4), testing::EndsWith("  -"));
}

TEST(ReduceTable, HasACellUnderEachOfItsColumns) {
  ReduceRow row = row_of_1000_bytes();
  EXPECT_EQ(cells_of_line(table_line(row, 4)).size(), cells_of_line(table_header(row)).size());
  row.copy = Timing{.least = 1e-6, .median = 4e-6};
  row.mpi = Timing{.least = 1e-6, .median = 3e-6};
  const std::vector<std::string> columns = cells_of_line(table_header(row));
  const std::vector<std::string> cells = cells_of_line(table_line(row, 4));
  ASSERT_EQ(cells.size(), columns.size());
  const auto under = [&](const std::string& column) {
    return cells.at(static_cast<std::size_t>(std::ranges::find(columns, column) - columns.begin()));
  };
  EXPECT_EQ(under("bytes"), "1000");
  EXPECT_EQ(under("count"), "250");
  EXPECT_EQ(under("algo"), "direct");
  EXPECT_EQ(under("t_med_us"), "2.00");
  EXPECT_EQ(under("/memcpy"), "0.50");
  EXPECT_EQ(under("mpi/"), "1.50");
  EXPECT_EQ(under("limit"), "memory");
  EXPECT_THAT(table_header(row_of_1000_bytes()), Not(HasSubstr("memcpy")));
}

TEST(ReduceTable, NamesTheLibraryThatChoosesByItselfAndNotWhatItDoesNotTell) {
  ReduceRow row = row_of_1000_bytes();
  row.by = {};
  const std::vector<std::string> columns = cells_of_line(table_header(row));
  const std::vector<std::string> cells = cells_of_line(table_line(row, 4));
  ASSERT_EQ(cells.size(), columns.size());
  const Json json = table_json({row}, allreduce::ranks_on_hosts(1, 4), nullptr)["rows"][0];
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (columns[i] == "algo") {
      EXPECT_EQ(cells[i], "nccl");
    } else if (columns[i] == "dims" || columns[i] == "rings" || columns[i] == "K") {
      EXPECT_EQ(cells[i], "-") << columns[i];
    }
  }
  EXPECT_EQ(json["algorithm"], "nccl");
  for (const char* key : {"rings", "chunks", "window", "predicted_seconds"}) {
    EXPECT_TRUE(json[key].is_null()) << key;
  }
}

TEST(ReduceTable, EndsWithTheMeanSpeedTheWorstDistanceAndTheErrors) {
  ReduceRow wrong = row_of_1000_bytes();
  wrong.error = 1;
  wrong.time.median = 4e-6;
  EXPECT_EQ(table_end({row_of_1000_bytes(), wrong}, 4),
            "# avg busbw 0.56  worst distance 4.00  errors 1");
}

TEST(ReduceTable, MarksUnknownValuesInItsJson) {
  ReduceRow unbounded = row_of_1000_bytes();
  unbounded.bound = {};
  unbounded.error.reset();
  unbounded.copy = Timing{.least = 1e-6, .median = 4e-6};
  const Json json =
      table_json({row_of_1000_bytes(), unbounded}, allreduce::ranks_on_hosts(1, 4), nullptr);
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["rows"][0]["algorithm"], "direct");
  EXPECT_EQ(json["rows"][0]["bound_by"], "memory");
  EXPECT_EQ(json["rows"][0]["bound_source"], "measured");
  EXPECT_EQ(json["rows"][0]["distance"], 2);
  EXPECT_EQ(json["rows"][0]["error"], 0);
  EXPECT_FALSE(json["rows"][0].contains("memcpy_median_seconds"));
  EXPECT_TRUE(json["rows"][1]["distance"].is_null());
  EXPECT_TRUE(json["rows"][1]["error"].is_null());
  EXPECT_EQ(json["rows"][1]["memcpy_median_seconds"], 4e-6);
  EXPECT_TRUE(json["limits"].is_null());
}

}  // namespace
}  // namespace cnn::bench
