#include "bench/machine/rapl.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <string>

#include "tests/support/files.h"

namespace cnn::bench {
namespace {

// A fake /sys/class/powercap.
class Powercap {
 public:
  void zone(const std::string& folder, const std::string& name, std::uint64_t microjoules) {
    write(folder + "/name", name);
    write(folder + "/max_energy_range_uj", "1000000000");
    write(folder + "/energy_uj", std::to_string(microjoules));
  }
  void write(const std::string& file, const std::string& text) const {
    folder_.write(file, text + "\n");
  }
  const std::filesystem::path& root() const { return folder_.path(); }

 private:
  tests::TemporaryFolder folder_;
};

double joules(TelemetrySource& source) { return source.read().joules.value(); }

TEST(Rapl, AddsThePackagesUpAndNothingThatIsInThem) {
  Powercap powercap;
  powercap.zone("intel-rapl:0", "package-0", 5'000'000);
  powercap.zone("intel-rapl:1", "package-1", 7'000'000);
  powercap.zone("intel-rapl:0:0", "core", 0);
  powercap.zone("intel-rapl:2", "psys", 0);
  powercap.zone("intel-rapl-mmio:0", "package-0", 0);
  const std::unique_ptr<TelemetrySource> source = open_rapl(powercap.root());
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->facts().source, "RAPL of 2 packages");
  EXPECT_EQ(joules(*source), 0);
  powercap.write("intel-rapl:0/energy_uj", "6000000");
  powercap.write("intel-rapl:1/energy_uj", "7500000");
  powercap.write("intel-rapl:0:0/energy_uj", "900000");
  EXPECT_DOUBLE_EQ(joules(*source), 1.5);
  EXPECT_FALSE(source->read().watts);
}

TEST(Rapl, GoesOnWhereACounterStartsAgain) {
  Powercap powercap;
  powercap.zone("intel-rapl:0", "package-0", 999'000'000);
  const std::unique_ptr<TelemetrySource> source = open_rapl(powercap.root());
  ASSERT_NE(source, nullptr);
  powercap.write("intel-rapl:0/energy_uj", "2000000");
  EXPECT_DOUBLE_EQ(joules(*source), 3);
  powercap.write("intel-rapl:0/energy_uj", "4000000");
  EXPECT_DOUBLE_EQ(joules(*source), 5);
}

TEST(Rapl, TellsNothingWhereACounterCannotBeRead) {
  Powercap powercap;
  powercap.zone("intel-rapl:0", "package-0", 1);
  const std::unique_ptr<TelemetrySource> source = open_rapl(powercap.root());
  ASSERT_NE(source, nullptr);
  powercap.write("intel-rapl:0/energy_uj", "");
  EXPECT_FALSE(source->read().joules);
  powercap.zone("intel-rapl:1", "package-1", 1);
  EXPECT_EQ(open_rapl(powercap.root()), nullptr);
}

TEST(Rapl, IsNotThereWhereTheKernelHasNone) {
  const Powercap powercap;
  EXPECT_EQ(open_rapl(powercap.root()), nullptr);
  EXPECT_EQ(open_rapl(powercap.root() / "missing"), nullptr);
}

}  // namespace
}  // namespace cnn::bench
