#include "bench/cuda/nvml.h"

#include <array>
#include <dlfcn.h>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "runtime/error.h"

namespace cnn::bench {
namespace {

// Declares the part of NVML's binary interface that this file uses, from NVML's reference guide.
// Only a card's driver includes the library, and toolkits may lack its header.
using Status = int;
using Device = void*;
struct Memory {
  unsigned long long total = 0, free = 0, used = 0;  // bytes
};
constexpr Status success = 0;
constexpr Status function_not_found = 13;
constexpr int sm_clock = 1;
constexpr int memory_clock = 2;
constexpr int gpu_sensor = 0;
constexpr unsigned mig_enabled = 1;

// These bits report slowdowns by hardware or heat, and the power brake.
constexpr std::uint64_t disturbing_bits = 0xe8;
// Lists names in the order of the bits of the clocks event reasons. Bit 0 reports an idle device,
// which is not a slowdown.
constexpr std::uint64_t idle_bit = 1;
constexpr std::array<std::string_view, 9> throttle_names{"idleness",
                                                         "application clocks",
                                                         "power cap",
                                                         "hardware slowdown",
                                                         "sync boost",
                                                         "thermal slowdown",
                                                         "hardware thermal slowdown",
                                                         "power brake",
                                                         "display clocks"};

class Library {
 public:
  explicit Library(const std::string& file) : handle_(dlopen(file.c_str(), RTLD_NOW), close) {
    if (handle_ == nullptr) {
      const char* const why = dlerror();
      throw Error(why == nullptr ? file + " cannot be loaded" : why);
    }
  }

  // Sets `function` to nullptr if the library lacks it: older versions have fewer functions.
  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(dlsym(handle_.get(), name));
  }

 private:
  static void close(void* handle) { static_cast<void>(dlclose(handle)); }

  std::unique_ptr<void, void (*)(void*)> handle_;
};

template <class... Arguments>
using Function = Status(Arguments...);
template <class Value>
using Query = Function<Device, Value*>;
using QueryOne = Function<Device, int, unsigned*>;  // for one of several clocks or sensors

// Loads and initialises the library.
struct Nvml {
  explicit Nvml(const std::string& file);
  ~Nvml() { static_cast<void>(shutdown()); }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::string text_of(Status status) const;

  Library library;
  Function<>*init = nullptr, *shutdown = nullptr;
  const char* (*error_string)(Status) = nullptr;
  Function<char*, unsigned>* driver_version = nullptr;
  Function<const char*, Device*>*by_bus_id = nullptr, *by_uuid = nullptr;
  Function<Device, unsigned*, unsigned*>* mig_mode = nullptr;
  QueryOne *clock = nullptr, *highest_clock = nullptr, *temperature = nullptr;
  Query<unsigned>*power = nullptr, *power_limit = nullptr;                  // mW
  Query<unsigned long long>*throttle_reasons = nullptr, *energy = nullptr;  // energy in mJ
  Query<Memory>* memory = nullptr;
};

Nvml::Nvml(const std::string& file) : library(file) {
  library.find(init, "nvmlInit_v2");
  library.find(shutdown, "nvmlShutdown");
  check(init != nullptr && shutdown != nullptr, file + " is no NVML: it lacks nvmlInit_v2");
  library.find(error_string, "nvmlErrorString");
  library.find(driver_version, "nvmlSystemGetDriverVersion");
  library.find(by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
  library.find(by_uuid, "nvmlDeviceGetHandleByUUID");
  library.find(mig_mode, "nvmlDeviceGetMigMode");
  library.find(clock, "nvmlDeviceGetClockInfo");
  library.find(highest_clock, "nvmlDeviceGetMaxClockInfo");
  library.find(temperature, "nvmlDeviceGetTemperature");
  library.find(power, "nvmlDeviceGetPowerUsage");
  library.find(power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  library.find(throttle_reasons, "nvmlDeviceGetCurrentClocksEventReasons");
  if (throttle_reasons == nullptr) {  // the function's name before driver 535
    library.find(throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  }
  library.find(energy, "nvmlDeviceGetTotalEnergyConsumption");
  library.find(memory, "nvmlDeviceGetMemoryInfo");
  if (const Status status = init(); status != success) {
    throw Error("NVML does not start: " + text_of(status));
  }
}

std::string Nvml::text_of(Status status) const {
  return error_string == nullptr ? fmt::format("error {}", status) : error_string(status);
}

// Returns the answer of a function times `unit`; empty if the library lacks the function or the
// device does not answer.
template <class Value>
std::optional<double> ask(Query<Value>* function, Device device, double unit = 1) {
  Value value = 0;
  if (function == nullptr || function(device, &value) != success) {
    return std::nullopt;
  }
  return unit * static_cast<double>(value);
}

std::optional<double> ask(QueryOne* function, Device device, int which) {
  unsigned value = 0;
  if (function == nullptr || function(device, which, &value) != success) {
    return std::nullopt;
  }
  return value;
}

bool is_divided(const Nvml& nvml, Device device) {
  unsigned now = 0;
  unsigned pending = 0;
  return nvml.mig_mode != nullptr && nvml.mig_mode(device, &now, &pending) == success &&
         now == mig_enabled;
}

// Finds the device to ask. A device reports the total of all its MIG instances, so for an instance
// only the instance's handle gives the right numbers.
Device find_device(const Nvml& nvml, const GpuAddress& address) {
  Device device = nullptr;
  const auto find = [&device](Function<const char*, Device*>* by, const std::string& name) {
    return by == nullptr ? function_not_found : by(name.c_str(), &device);
  };
  Status status = find(nvml.by_bus_id, address.pci_bus_id);
  if (status != success) {
    status = find(nvml.by_uuid, "GPU-" + address.uuid);
  }
  if (status != success || is_divided(nvml, device)) {
    status = find(nvml.by_uuid, "MIG-" + address.uuid);
  }
  if (status != success) {
    throw Error(fmt::format("NVML does not find the device at {} (UUID {}): {}", address.pci_bus_id,
                            address.uuid, nvml.text_of(status)));
  }
  return device;
}

// Empty if the library does not tell.
std::string driver_of(const Nvml& nvml) {
  std::array<char, 96> version{};  // NVML wants 80
  const bool known = nvml.driver_version != nullptr &&
                     nvml.driver_version(version.data(), version.size()) == success;
  return known ? version.data() : "";
}

TelemetryFacts facts_of(const Nvml& nvml, Device device) {
  TelemetryFacts facts{.source = "NVML",
                       .highest_clock_mhz = ask(nvml.highest_clock, device, sm_clock),
                       .power_limit_watts = ask(nvml.power_limit, device, 1e-3),
                       .throttle_names = {throttle_names.begin(), throttle_names.end()},
                       .disturbing = disturbing_bits};
  if (const std::string driver = driver_of(nvml); !driver.empty()) {
    facts.source += fmt::format(" of driver {}", driver);
  }
  return facts;
}

class NvmlSource final : public TelemetrySource {
 public:
  NvmlSource(const std::string& library, const GpuAddress& address)
      : nvml_(library), device_(find_device(nvml_, address)), facts_(facts_of(nvml_, device_)) {}

  TelemetryFacts facts() const override { return facts_; }

  Reading read() noexcept override {
    Reading reading{.clock_mhz = ask(nvml_.clock, device_, sm_clock),
                    .memory_clock_mhz = ask(nvml_.clock, device_, memory_clock),
                    .watts = ask(nvml_.power, device_, 1e-3),
                    .celsius = ask(nvml_.temperature, device_, gpu_sensor),
                    .joules = ask(nvml_.energy, device_, 1e-3)};
    Memory memory;
    if (nvml_.memory != nullptr && nvml_.memory(device_, &memory) == success) {
      reading.memory_bytes = static_cast<double>(memory.used);
    }
    unsigned long long reasons = 0;
    if (nvml_.throttle_reasons != nullptr && nvml_.throttle_reasons(device_, &reasons) == success) {
      reading.throttled = reasons & ~idle_bit;
    }
    return reading;
  }

 private:
  Nvml nvml_;
  Device device_;
  TelemetryFacts facts_;
};

}  // namespace

std::unique_ptr<TelemetrySource> open_nvml(const GpuAddress& device, const std::string& library) {
  return std::make_unique<NvmlSource>(library, device);
}

std::string driver_release(const std::string& library) {
  try {
    return driver_of(Nvml(library));
  } catch (const Error&) {
    return "";
  }
}

}  // namespace cnn::bench
