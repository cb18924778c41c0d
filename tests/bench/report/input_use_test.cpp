#include "bench/report/input_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Two threads work for ten seconds: 4 s reading, 10 s decoding, 2 s resizing, 4 s idle.
InputUse ten_seconds() {
  return {.read = {.examples = 1100,
                   .skipped = 3,
                   .bytes = 1100 << 20U,
                   .read_seconds = 4,
                   .decode_seconds = 10,
                   .resize_seconds = 2},
          .images = 1000,
          .threads = 2,
          .cores = 8,
          .seconds = 10,
          .waited = 2.5,
          .cpu_seconds = 12.5};
}

TEST(InputUse, DividesTheThreadsTime) {
  const Json json = input_json(ten_seconds());
  EXPECT_DOUBLE_EQ(json["images_per_sec"], 100);
  EXPECT_DOUBLE_EQ(json["images_per_cpu_second"], 80);
  EXPECT_DOUBLE_EQ(json["read_share"], 0.2);
  EXPECT_DOUBLE_EQ(json["decode_share"], 0.5);
  EXPECT_DOUBLE_EQ(json["resize_share"], 0.1);
  EXPECT_NEAR(json["idle_share"].get<double>(), 0.2, 1e-12);
  EXPECT_DOUBLE_EQ(json["wait_share"], 0.25);
  EXPECT_EQ(json["examples_skipped"], 3);
  EXPECT_THAT(input_line(ten_seconds()),
              AllOf(HasSubstr("100.0 images/s of 2 threads"), HasSubstr("80.0 for each second"),
                    HasSubstr("1100.0 MiB read at 110.0 MiB/s"),
                    HasSubstr("read 20 %, decode 50 %, resize 10 % and wait 20 %"),
                    HasSubstr("3 broken examples were left out")));
  InputUse one = ten_seconds();
  one.read.skipped = 1;
  EXPECT_THAT(input_line(one), HasSubstr("; 1 broken example was left out"));
}

TEST(InputUse, KnowsWhetherThreadsHadWork) {
  EXPECT_TRUE(has_busy_threads(ten_seconds()));
  InputUse use = ten_seconds();
  use.read = {.examples = 1100};
  EXPECT_FALSE(has_busy_threads(use));
}

TEST(InputUse, SaysNothingOfProcessorsThatComputeToo) {
  InputUse use = ten_seconds();
  use.cpu_seconds = 0;
  EXPECT_TRUE(input_json(use)["images_per_cpu_second"].is_null());
  EXPECT_THAT(input_line(use), testing::Not(HasSubstr("each second")));
}

TEST(InputUse, AdvisesWhatTheThreadsLack) {
  InputUse use = ten_seconds();
  EXPECT_THAT(input_advice(use), HasSubstr("--datasets_num_private_threads=8"));
  use.cores = 2;
  EXPECT_THAT(input_advice(use), HasSubstr("store the images smaller"));
  use.read.resize_seconds = 11;
  EXPECT_THAT(input_advice(use), HasSubstr("--resize_method"));
  use.read.read_seconds = 15;
  EXPECT_THAT(input_advice(use),
              AllOf(HasSubstr("faster disk"), HasSubstr("--datasets_use_caching")));
}

}  // namespace
}  // namespace cnn::bench
