#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

// The library that the program opens as NVML. It reports the devices of the emulated runtime, with
// the same addresses and number. Device d draws 400 + 50 d watts and runs at 1980 - 100 d MHz, so a
// test can tell which device was read.

namespace {

constexpr int success = 0, invalid_argument = 2, not_supported = 3, not_found = 6;
constexpr int sm_clock = 1, memory_clock = 2;
constexpr unsigned long long power_cap = 0x4;
constexpr unsigned long long device_bytes = 2ULL << 30U;

struct Device {
  int number = 0;
};

int number_of_devices() {
  const char* const text = std::getenv("CNN_EMULATED_DEVICES");
  return text == nullptr ? 1 : std::atoi(text);
}

std::array<Device, 64>& devices() {
  static std::array<Device, 64> all = [] {
    std::array<Device, 64> made{};
    for (std::size_t d = 0; d < made.size(); ++d) {
      made.at(d).number = static_cast<int>(d);
    }
    return made;
  }();
  return all;
}

int find(std::string_view name, const char* format, int first, void** device) {
  for (int d = 0; d < number_of_devices(); ++d) {
    std::array<char, 64> known{};
    static_cast<void>(std::snprintf(known.data(), known.size(), format, first + d));
    if (name == known.data()) {
      *device = &devices().at(static_cast<std::size_t>(d));
      return success;
    }
  }
  return not_found;
}

int number_of(void* device) { return static_cast<Device*>(device)->number; }
unsigned watts_of(void* device) { return 400 + 50 * static_cast<unsigned>(number_of(device)); }

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): power counts from here
const auto start = std::chrono::steady_clock::now();

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are NVML's.
extern "C" {

int nvmlInit_v2() { return success; }
int nvmlShutdown() { return success; }

const char* nvmlErrorString(int status) {
  return status == not_found ? "Not Found" : "Invalid Argument";
}

int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  static_cast<void>(std::snprintf(version, length, "580.00 (emulated)"));
  return success;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  return find(bus_id, "0000:%02x:00.0", 0x1b, device);
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  return find(uuid, "GPU-10111213-1415-1617-1819-1a1b1c1d1e%02x", 0, device);
}

int nvmlDeviceGetMigMode(void* /*device*/, unsigned* /*now*/, unsigned* /*pending*/) {
  return not_supported;
}

int nvmlDeviceGetClockInfo(void* device, int type, unsigned* mhz) {
  if (type != sm_clock && type != memory_clock) {
    return invalid_argument;
  }
  *mhz = type == memory_clock ? 2619 : 1980 - 100 * static_cast<unsigned>(number_of(device));
  return success;
}

int nvmlDeviceGetMaxClockInfo(void* /*device*/, int type, unsigned* mhz) {
  *mhz = 1980;
  return type == sm_clock ? success : invalid_argument;
}

int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  *celsius = 50 + static_cast<unsigned>(number_of(device));
  return sensor == 0 ? success : invalid_argument;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 1000 * watts_of(device);
  return success;
}

int nvmlDeviceGetEnforcedPowerLimit(void* /*device*/, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return success;
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  const std::chrono::duration<double, std::milli> since = std::chrono::steady_clock::now() - start;
  *millijoules = static_cast<unsigned long long>(since.count() * watts_of(device));
  return success;
}

// The power limit throttles every device except the first.
int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
  *reasons = number_of(device) == 0 ? 0 : power_cap;
  return success;
}

int nvmlDeviceGetMemoryInfo(void* /*device*/, unsigned long long* total_free_used) {
  total_free_used[0] = device_bytes;
  total_free_used[1] = device_bytes / 2;
  total_free_used[2] = device_bytes / 2;
  return success;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
