#include "bench/machine/rapl.h"

#include <fmt/format.h>
#include <fstream>
#include <utility>
#include <vector>

#include "bench/machine/open_file.h"

namespace cnn::bench {
namespace {

// A counter in microjoules that wraps to 0 after `highest`, at full power within a minute.
struct Package {
  OpenFile counter;
  std::uint64_t highest = 0;
  std::uint64_t last = 0;
};

class RaplSource final : public TelemetrySource {
 public:
  explicit RaplSource(std::vector<Package> packages) : packages_(std::move(packages)) {}

  TelemetryFacts facts() const override {
    return {.source = fmt::format("RAPL of {} package{}", packages_.size(),
                                  packages_.size() == 1 ? "" : "s")};
  }

  Reading read() noexcept override {
    for (Package& package : packages_) {
      const std::optional<std::uint64_t> now = package.counter.number();
      if (!now) {
        return {};
      }
      const std::uint64_t wrapped = *now < package.last ? package.highest : 0;
      microjoules_ += *now + wrapped - package.last;
      package.last = *now;
    }
    return {.joules = 1e-6 * static_cast<double>(microjoules_)};
  }

 private:
  std::vector<Package> packages_;
  std::uint64_t microjoules_ = 0;  // since the object was opened
};

// Returns whether a zone is a package: "intel-rapl:0" is a package or the whole board,
// "intel-rapl:0:1" a part of a package; processors of other vendors use the same names.
bool is_package(const std::filesystem::path& zone) {
  const std::string folder = zone.filename().string();
  std::ifstream file(zone / "name");
  std::string name;
  return folder.starts_with("intel-rapl:") && folder.find(':') == folder.rfind(':') &&
         std::getline(file, name) && name.starts_with("package");
}

}  // namespace

std::unique_ptr<TelemetrySource> open_rapl(const std::filesystem::path& powercap) {
  std::vector<Package> packages;
  std::error_code none;
  for (const auto& zone : std::filesystem::directory_iterator(powercap, none)) {
    if (!is_package(zone.path())) {
      continue;
    }
    OpenFile counter(zone.path() / "energy_uj");
    const std::optional<std::uint64_t> now = counter.number();
    const std::optional<std::uint64_t> highest =
        OpenFile(zone.path() / "max_energy_range_uj").number();
    if (!now || !highest) {
      return nullptr;  // otherwise the sum would lack a package
    }
    packages.push_back({.counter = std::move(counter), .highest = *highest, .last = *now});
  }
  return packages.empty() ? nullptr : std::make_unique<RaplSource>(std::move(packages));
}

}  // namespace cnn::bench
