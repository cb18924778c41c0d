#include "tests/support/cuda/runtime/description.h"

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/error.h"

namespace cnn::tests::emulated {

Description read_description(const std::string& file) {
  std::ifstream in(file);
  check(in.good(), "the emulated GPU cannot read the description of its devices in " + file);
  try {
    const nlohmann::json device = nlohmann::json::parse(in).at("cudnn");
    const auto number = [&device](const char* key) { return device.at(key).get<int>(); };
    const auto bytes = [&device](const char* key) { return device.at(key).get<std::size_t>(); };
    const int capability = number("deviceVer");  // 900 means 9.0
    return {.name = device.at("deviceName").get<std::string>(),
            .major = capability / 100,
            .minor = capability % 100 / 10,
            .multiprocessors = number("multiProcessorCount"),
            .clock_khz = number("smClockRateKHz"),
            .memory_clock_khz = number("memClockRateKHz"),
            .threads_per_block = number("maxThreadsPerBlock"),
            .threads_per_multiprocessor = number("maxThreadsPerSM"),
            .blocks_per_multiprocessor = number("maxCtasPerSM"),
            .registers_per_multiprocessor = number("maxRegistersPerSM"),
            .shared_bytes = bytes("maxSharedMemoryPerBlock"),
            .largest_shared_bytes = bytes("maxSharedMemoryPerBlockOptin")};
  } catch (const nlohmann::json::exception& error) {
    throw Error("the emulated GPU cannot use the description of its devices in " + file + ": " +
                error.what());
  }
}

Description described_machine() {
  const char* const file = std::getenv("CNN_EMULATED_MACHINE");
  return read_description(file != nullptr ? file : CNN_SOURCE_DIR "/scripts/machines/h100.json");
}

}  // namespace cnn::tests::emulated
