#include "bench/machine/machine_json.h"

namespace cnn::bench {
namespace {

Json gpu_json(const GpuInfo& gpu) {
  return {{"name", gpu.name},
          {"driver", gpu.driver},
          {"compute_capability", gpu.compute_capability},
          {"multiprocessors", gpu.multiprocessors},
          {"memory_bytes", gpu.memory_bytes},
          {"clock_mhz", gpu.clock_mhz},
          {"memory_clock_mhz", gpu.memory_clock_mhz},
          {"pci_bus_id", gpu.pci_bus_id}};
}

void add_if_known(Json& json, const char* key, const std::optional<Range>& range) {
  if (range) {
    json[key] = {{"min", range->min}, {"mean", range->mean}, {"max", range->max}};
  }
}

void add_if_known(Json& json, const char* key, const std::optional<double>& value) {
  if (value) {
    json[key] = *value;
  }
}

}  // namespace

Json machine_json(const MachineInfo& info, const Backend& backend) {
  Json libraries = Json::object();
  for (const auto& [name, version] : backend.libraries) {
    libraries[name] = version;
  }
  return {{"cpu",
           {{"name", info.cpu_name},
            {"cores_used", backend.processors.threads},
            {"instruction_sets", backend.instruction_sets}}},
          {"gpu", backend.gpu ? gpu_json(*backend.gpu) : Json(nullptr)},
          {"memory_bytes", info.memory_total},
          {"host", info.host},
          {"libraries", libraries}};
}

Json telemetry_json(const Telemetry& telemetry) {
  Json json{{"source", telemetry.facts.source},
            {"samples", telemetry.samples},
            {"seconds", telemetry.seconds}};
  add_if_known(json, "clock_mhz", telemetry.clock_mhz);
  add_if_known(json, "highest_clock_mhz", telemetry.facts.highest_clock_mhz);
  add_if_known(json, "memory_clock_mhz", telemetry.memory_clock_mhz);
  add_if_known(json, "watts", telemetry.watts);
  add_if_known(json, "power_limit_watts", telemetry.facts.power_limit_watts);
  add_if_known(json, "celsius", telemetry.celsius);
  add_if_known(json, "memory_bytes", telemetry.memory_bytes);
  if (telemetry.throttled) {
    Json shares = Json::object();
    for (const Telemetry::Throttle& throttle : *telemetry.throttled) {
      shares[throttle.reason] = throttle.share;
    }
    json["throttled"] = shares;
  }
  add_if_known(json, "joules", telemetry.joules);
  if (telemetry.joules) {
    json["joules_from"] = telemetry.joules_counted ? "counter" : "power";
  }
  add_if_known(json, "images_per_joule", telemetry.images_per_joule);
  return json;
}

}  // namespace cnn::bench
