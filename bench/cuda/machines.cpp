#include "bench/cuda/machines.h"

#include <nlohmann/json.hpp>

#include "data/json/parse_json.h"
#include "runtime/error.h"

namespace cnn::bench {

layers::cuda::Machine machine_of(const MachineModel& model) {
  check(model.cudnn.has_value(), model.name + ": its profile has no section cudnn");
  try {
    const auto device = data::parse_json<nlohmann::json>(*model.cudnn);
    return {.name = model.name,
            .device_json = *model.cudnn,
            .capability = device.at("deviceVer").get<int>() / 10,
            .multiprocessors = device.at("multiProcessorCount").get<int>(),
            .memory_bytes = device.at("totalGlobalMem").get<std::size_t>()};
  } catch (const nlohmann::json::exception& error) {
    throw Error(model.name + ": section cudnn of its profile cannot be read: " + error.what());
  }
}

}  // namespace cnn::bench
