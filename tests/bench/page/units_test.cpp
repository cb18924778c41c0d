#include "bench/page/units.h"

#include <gtest/gtest.h>

namespace cnn::page {
namespace {

TEST(PageUnits, WriteSizesInTheLargestUnitOfWhichThereIsOne) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1024), "1.0 KiB");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(24.0 * (1 << 30)), "24.0 GiB");
  EXPECT_EQ(bytes_text(5000.0 * (1LL << 40)), "5000.0 TiB") << "TiB is the largest unit";
  EXPECT_EQ(bytes_text(-2048), "-2.0 KiB");
}

TEST(PageUnits, WriteRatesInDecimalUnits) {
  EXPECT_EQ(rate_text(999, "B"), "999 B/s");
  EXPECT_EQ(rate_text(15.6e9, "B"), "15.6 GB/s");
  EXPECT_EQ(rate_text(102e9, "FLOP"), "102.0 GFLOP/s");
  EXPECT_EQ(rate_text(1e12, "FLOP"), "1.0 TFLOP/s");
}

TEST(PageUnits, ShowNoFullStepOfAUnit) {
  EXPECT_EQ(bytes_text((1 << 20) - 1), "1.0 MiB") << "not 1024.0 KiB";
  EXPECT_EQ(bytes_text((1 << 20) - 100), "1023.9 KiB");
  EXPECT_EQ(rate_text(999.99e6, "B"), "1.0 GB/s");
}

TEST(PageUnits, GoByTheKeyOfAValue) {
  EXPECT_EQ(readable("memory_bytes", 2048), "2.0 KiB");
  EXPECT_EQ(readable("bandwidth_bytes_per_second", 2e9), "2.0 GB/s");
  EXPECT_EQ(readable("peak_flops_per_second", 3e12), "3.0 TFLOP/s");
  EXPECT_EQ(readable("cores_used", 16), "16");
  EXPECT_EQ(readable("memory_bytes", "unknown"), "unknown");
  EXPECT_EQ(readable("memory_bytes", nullptr), "");
}

}  // namespace
}  // namespace cnn::page
